// Makes a database for tests of the service: the made-up lab (made_lab.h) with ResNet-50. With two numbers,
// as many more plans and runs; with a third, a newer fit whose link between hosts has as many samples.

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <random>
#include <vector>

#include "perfmodel/shipped_profiles.h"
#include "tests/api/rest/made_lab.h"
#include "tests/perfmodel/synthetic_profile.h"

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

/// Sizes spread evenly on a log axis; a sample in a thousand took ten times as long as its neighbours.
void add_samples(Store& store, long number) {
  const FitRow before = store.current_fit("lab").value();
  const Fit& fit = before.snapshot.links.at(LinkClass::kInterHost).alone;
  std::mt19937_64 random{1};
  std::uniform_real_distribution<double> place(0, 1), noise(0.9, 1.1);
  std::vector<NewSample> samples;
  for (long i = 0; i < number; ++i) {
    const double ratio = static_cast<double>(fit.largest.count) / static_cast<double>(fit.smallest.count);
    const Bytes bytes{
        static_cast<std::uint64_t>(static_cast<double>(fit.smallest.count) * std::pow(ratio, place(random)))};
    const double factor = i % 1000 == 0 ? 10 : noise(random);
    samples.push_back({.kind = "message",
                       .source_rank = 0,
                       .destination_rank = 2,
                       .bytes = bytes,
                       .median = fit.curve(bytes) * factor,
                       .half_width = fit.curve(bytes) / 50,
                       .repetitions = 20});
  }
  store.atomically([&] {
    const RowId session = store.start_session({.cluster = before.cluster, .owner = "a test"});
    store.append_samples(session, samples);
    store.end_session(session, WorkState::kComplete);
    store.add_fit({session, before.snapshot, {{"made", "up"}}});
  });
}

}  // namespace
}  // namespace commtune

int main(int argc, char** argv) {
  using namespace commtune;
  long plans = 0, runs = 0, samples = 0;
  if (argc < 2) {
    std::fputs("usage: made-store FILE [PLANS RUNS [SAMPLES]]\n", stderr);
    return 2;
  }
  if (argc > 3) {
    plans = std::atol(argv[2]);
    runs = std::atol(argv[3]);
  }
  if (argc > 4) samples = std::atol(argv[4]);
  try {
    Store store = Store::open(argv[1], {.version = "test"});
    make_lab(store, shipped_profile("resnet50").value());
    if (plans > 0 || runs > 0) add_many(store, plans, runs);
    if (samples > 0) add_samples(store, samples);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "made-store: %s\n", error.what());
    return 1;
  }
  return 0;
}
