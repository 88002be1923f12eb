#include "tests/api/rest/made_lab.h"

#include <cmath>
#include <random>

#include "api/actions/tune.h"

namespace commtune {
namespace {

constexpr std::uint64_t kSmallest = 4, kLargest = 64U << 20U;

/// Latency and bandwidth of a law that the samples follow, within a few per cent.
struct Law {
  double alpha = 0, beta = 0;
  double at(std::uint64_t bytes) const { return alpha + beta * static_cast<double>(bytes); }
};

Fit fit_of(const Law& law) {
  Fit fit;
  fit.curve = Curve(Seconds{law.alpha}, SecondsPerByte{law.beta});
  fit.quality = {25, 0.999, 0.01, 0.03};
  fit.smallest = Bytes{kSmallest};
  fit.largest = Bytes{kLargest};
  // Both parameters to within 2 %.
  fit.covariance = {law.alpha * law.alpha * 4e-4, 0, 0, law.beta * law.beta * 4e-4};
  return fit;
}

const Law kInside{8e-6, 1.2e-10}, kBetween{6e-5, 8e-9}, kRing{4e-4, 1.25e-8}, kServers{3e-4, 1.7e-8};

Cluster lab() {
  Cluster cluster;
  cluster.name = "lab";
  cluster.transport = "tcp";
  cluster.fingerprint = "0123456789abcdef";
  cluster.facts = {{"host.n1.cpu", "made up"}, {"host.n2.cpu", "made up"}};
  cluster.hosts = {{"n1", 2}, {"n2", 2}};
  cluster.links[LinkClass::kIntraHost] = {fit_of(kInside), fit_of({1e-6, 1.1e-10}), fit_of({1e-6, 2e-10})};
  cluster.links[LinkClass::kInterHost] = {fit_of(kBetween), fit_of({2e-6, 8e-9}), fit_of({2e-6, 9e-9})};
  cluster.operations.push_back(
      {AllReduce{Collective::kRing}, Operation::kAllReduce, 4, fit_of(kRing), fit_of({5e-5, 1.2e-8})});
  cluster.operations.push_back({ParameterServer{4, Placement::kColocated, Assignment::kEven},
                                Operation::kPushPull, 4, fit_of(kServers), fit_of({6e-5, 1.6e-8})});
  cluster.reduce_seconds_per_byte = {2e-11, 1e-12};
  cluster.copy_seconds_per_byte = {2e-11, 1e-12};
  cluster.interference = {0.01, 0.002};
  cluster.jitter_seconds = {1e-4, 1e-5};
  return cluster;
}

class Sampler {
 public:
  Sampler(Store& store, RowId session) : store_(store), session_(session) {}

  void add(NewSample sample, const Law& law) {
    for (std::uint64_t bytes = kSmallest; bytes <= kLargest; bytes *= 2) {
      sample.bytes = Bytes{bytes};
      sample.median = Seconds{law.at(bytes) * std::uniform_real_distribution<double>(0.97, 1.03)(random_)};
      sample.half_width = sample.median / 50;
      sample.repetitions = 20;
      store_.append_sample(session_, sample);
    }
  }

 private:
  Store& store_;
  const RowId session_;
  std::mt19937_64 random_{1};
};

void measure(Store& store, const Cluster& cluster) {
  const RowId id = store.put_cluster(cluster);
  const RowId session = store.start_session({.cluster = id, .settings = {{"made", "up"}}, .owner = "a test"});
  Sampler sampler(store, session);
  for (int from = 0; from < 4; ++from) {
    for (int to = 0; to < 4; ++to) {
      if (from == to) continue;
      const Law& law = from / 2 == to / 2 ? kInside : kBetween;
      for (const int in_flight : {1, 8})
        sampler.add({.kind = "message", .source_rank = from, .destination_rank = to, .in_flight = in_flight},
                    in_flight == 1 ? law : Law{law.alpha / 30, law.beta});
    }
  }
  sampler.add({.kind = "operation",
               .operation = Operation::kAllReduce,
               .road = AllReduce{Collective::kRing},
               .workers = 4},
              kRing);
  store.end_session(session, WorkState::kComplete);
  store.add_fit({session, cluster, {{"made", "up"}}});
}

void plan(Store& store, const Cluster& cluster, const Profile& profile) {
  api::TuneOutcome outcome;
  outcome.fit = 1;
  outcome.answer = tuner::tune(profile, cluster);
  api::keep_answer(store, profile, {false, 1, nullptr}, outcome);
}

}  // namespace

NewRun run_of(RowId plan) {
  return {.plan = plan,
          .cluster = 1,
          .hosts = {{"n1", 2}, {"n2", 2}},
          .versions = {{"commtune", "test"}},
          .settings = {{"iterations", 3}}};
}

RunResult result_of(double seconds) {
  return {.iteration_seconds = {seconds, seconds * 1.01, seconds * 0.99},
          .median = Seconds{seconds},
          .low = Seconds{seconds * 0.99},
          .high = Seconds{seconds * 1.01}};
}

void make_lab(Store& store, const Profile& profile) {
  const Cluster cluster = lab();
  store.atomically([&] {
    measure(store, cluster);
    plan(store, cluster, profile);
    store.add_run(run_of(1), result_of(0.3));
  });
}

}  // namespace commtune
