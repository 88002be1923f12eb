// Makes a database for tests of the service: the made-up lab (made_lab.h) with ResNet-50. With two numbers,
// as many more plans and runs.

#include <cstdio>
#include <cstdlib>
#include <exception>

#include "perfmodel/shipped_profiles.h"
#include "perfmodel/synthetic_profile.h"
#include "tests/api/rest/made_lab.h"

namespace commtune {
namespace {

void add_many(Store& store, long plans, long runs) {
  const Profile profile = synthetic_profile(4, Bytes{1 << 20}, Seconds{1e-3}, Seconds{2e-3});
  Plan plan;
  plan.method = "bsp-a2a";
  plan.model = profile.model;
  plan.profile = digest(profile);
  plan.workers = 4;
  Message all;
  TensorId tensor = 0;
  for (const TensorRef& ref : tensors_of(profile)) all.pieces.push_back({tensor++, Bytes{0}, ref.bytes});
  plan.messages = {all};
  plan.priority = {0};
  store.atomically([&] {
    const RowId id = store.put_profile(profile);
    for (long i = 0; i < plans; ++i) {
      plan.credit = Bytes{static_cast<std::uint64_t>(i)};
      store.add_plan({.plan = plan,
                      .profile = id,
                      .fit = 1,
                      .ranking = {{"chosen", false}},
                      .predicted = Seconds{0.02}});
    }
    for (long i = 0; i < runs; ++i) store.add_run(run_of(1 + i % (plans + 1)), result_of(0.02));
  });
}

}  // namespace
}  // namespace commtune

int main(int argc, char** argv) {
  using namespace commtune;
  long plans = 0, runs = 0;
  if (argc < 2) {
    std::fputs("usage: made-store FILE [PLANS RUNS]\n", stderr);
    return 2;
  }
  if (argc > 3) {
    plans = std::atol(argv[2]);
    runs = std::atol(argv[3]);
  }
  try {
    Store store = Store::open(argv[1], {.version = "test"});
    make_lab(store, shipped_profile("resnet50").value());
    if (plans > 0 || runs > 0) add_many(store, plans, runs);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "made-store: %s\n", error.what());
    return 1;
  }
  return 0;
}
