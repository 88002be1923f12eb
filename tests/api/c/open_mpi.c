/* A rank that mpirun started: joins without an all-gather of its own, and trains for three steps. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/c/commtune.h"

static void check(commtune_code code, const char* what) {
  if (code == COMMTUNE_OK) return;
  fprintf(stderr, "%s: %s: %s\n", what, commtune_code_name(code), commtune_last_message());
  exit(1);
}

int main(int argc, char** argv) {
  commtune_join_options options;
  memset(&options, 0, sizeof options);
  options.transport = argc > 1 ? argv[1] : "mpi";
  commtune_session* session = NULL;
  check(commtune_join(&options, &session), "join");
  const commtune_tensor tensor = {"weight", 4000};
  check(commtune_layout(session, COMMTUNE_FLOAT32, 1, &tensor, NULL), "layout");
  check(commtune_adopt(session, "buckets"), "adopt");
  /* 1, 2, ..., n: the mean is (n + 1) / 2. */
  const float mean = (float)(commtune_ranks(session) + 1) / 2.0f;
  float* gradient = commtune_gradient(session, 0);
  for (int step = 0; step < 3; ++step) {
    check(commtune_begin(session), "begin");
    for (int i = 0; i < 1000; ++i) gradient[i] = (float)(commtune_rank(session) + 1);
    check(commtune_ready(session, 0), "ready");
    check(commtune_wait(session, 0), "wait");
    for (int i = 0; i < 1000; ++i) {
      if (gradient[i] < mean || gradient[i] > mean) return 2;
    }
  }
  check(commtune_leave(session), "leave");
  commtune_destroy(session);
  return 0;
}
