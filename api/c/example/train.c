/* Trains a small network on four ranks, each on its part of the samples, and then once more alone on all of
 * them: the losses are the same.
 *
 *   commtune-train-c [PLAN]     a file, or "buckets" */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "api/c/commtune.h"
#include "api/c/example/network.h"
#include "api/c/example/ranks.h"

enum { kRanks = 4, kSteps = 400 };
static const float kRate = 0.5f;
static const unsigned kSeed = 7;

typedef struct training {
  const char* plan;
  double (*losses)[kRanks]; /* by step and rank, in memory that all ranks share */
} training;

static void no_one_waits(void* context, size_t tensor) {
  (void)context;
  (void)tensor;
}

static void check(commtune_code code, const char* what) {
  if (code == COMMTUNE_OK) return;
  fprintf(stderr, "%s: %s: %s\n", what, commtune_code_name(code), commtune_last_message());
  exit(1);
}

static void tell_ready(void* session, size_t tensor) { check(commtune_ready(session, tensor), "ready"); }

static commtune_session* join(job* of, int rank) {
  commtune_join_options options;
  memset(&options, 0, sizeof options);
  options.rank = rank;
  options.ranks = kRanks;
  options.all_gather = all_gather;
  options.context = of;
  commtune_session* session = NULL;
  check(commtune_join(&options, &session), "join");
  return session;
}

static int train(job* of, int rank, void* context) {
  const training* run = context;
  commtune_session* session = join(of, rank);
  commtune_tensor tensors[kTensors];
  for (size_t i = 0; i < kTensors; ++i) {
    tensors[i].name = kNames[i];
    tensors[i].bytes = kElements[i] * sizeof(float);
  }
  check(commtune_layout(session, COMMTUNE_FLOAT32, kTensors, tensors, NULL), "layout");
  check(commtune_adopt(session, run->plan), "adopt");

  network net;
  make_network(&net, kSeed);
  for (size_t i = 0; i < kTensors; ++i) net.gradients[i] = commtune_gradient(session, i);
  for (int step = 0; step < kSteps; ++step) {
    check(commtune_begin(session), "begin");
    run->losses[step][rank] = pass(&net, (size_t)rank, kRanks, tell_ready, session);
    for (size_t i = 0; i < kTensors; ++i) {
      check(commtune_wait(session, i), "wait");
      update(&net, i, kRate);
    }
  }
  if (rank == 0) {
    commtune_statistics statistics;
    check(commtune_get_statistics(session, &statistics), "statistics");
    printf("%d steps, %d messages of %d B in all, waited %.1f ms\n", (int)statistics.iterations,
           (int)statistics.messages, (int)statistics.gradient_bytes, 1e3 * statistics.waited_seconds);
    fflush(stdout);
  }
  check(commtune_leave(session), "leave");
  commtune_destroy(session);
  free_network(&net);
  return 0;
}

static double mean_loss(const training* run, int step) {
  double sum = 0.0;
  for (int rank = 0; rank < kRanks; ++rank) sum += run->losses[step][rank];
  return sum / kRanks;
}

/* The same steps by one process on all samples.
 * returns  the largest difference of losses */
static double compare_with_one_process(const training* run) {
  network net;
  double largest = 0.0;
  make_network(&net, kSeed);
  for (size_t i = 0; i < kTensors; ++i) net.gradients[i] = calloc(kElements[i], sizeof(float));
  for (int step = 0; step < kSteps; ++step) {
    const double loss = pass(&net, 0, 1, no_one_waits, NULL);
    largest = fmax(largest, fabs(loss - mean_loss(run, step)));
    for (size_t i = 0; i < kTensors; ++i) update(&net, i, kRate);
  }
  for (size_t i = 0; i < kTensors; ++i) free(net.gradients[i]);
  free_network(&net);
  return largest;
}

int main(int argc, char** argv) {
  training run = {argc > 1 ? argv[1] : "buckets", NULL};
  const size_t bytes = sizeof(double[kSteps][kRanks]);
  run.losses = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (run.losses == MAP_FAILED || run_ranks(kRanks, train, &run) != 0) return 1;
  const double first = mean_loss(&run, 0), last = mean_loss(&run, kSteps - 1);
  const double largest = compare_with_one_process(&run);
  printf("loss %.4f -> %.4f on %d ranks; one process differs by at most %.2g\n", first, last, kRanks, largest);
  return last < 0.5 * first && largest < 1e-3 ? 0 : 1;
}
