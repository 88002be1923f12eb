// How long a full answer takes on one core, and how fast the simulator is.
//
//   planning [--repetitions 9]
//   planning --once CASE     one full answer and nothing else: what tests/bench/planning counts the
//   instructions of
//
// A full answer: all methods, joint search, bounds of all roads and 64 draws of doubt. The cluster has
// measured links, an all-reduce and servers, all with a covariance, so that every draw prices every road
// anew.
//
// Targets: ResNet-50 on 32 workers <= 20 ms, BERT-Large on 32 <= 50 ms, 10,000 tensors on 2048 <= 1 s; >= 5
// million message events a second in every order. Medians. Exits with 1 where one is missed.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "perfmodel/shipped_profiles.h"
#include "tests/perfmodel/synthetic_profile.h"
#include "tuner/messages.h"
#include "tuner/methods/method.h"
#include "tuner/tuner.h"

namespace {

using namespace commtune;

constexpr double kResNetSeconds = 0.020, kBertSeconds = 0.050, kHugeSeconds = 1.0, kEventsPerSecond = 5e6;
/// Numbers of tensors whose answers are timed beside the others, and have no target.
constexpr std::array kUntargeted{100, 300, 1000, 3000};

double seconds_of(const std::function<void()>& run) {
  const auto started = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
}

struct Times {
  double median = 0, p95 = 0;
};

Times times_of(int repetitions, const std::function<void()>& run) {
  run();  // warm
  std::vector<double> list;
  list.reserve(static_cast<std::size_t>(repetitions));
  for (int i = 0; i < repetitions; ++i) list.push_back(seconds_of(run));
  std::sort(list.begin(), list.end());
  return {list[list.size() / 2],
          list[static_cast<std::size_t>(std::lround(0.95 * static_cast<double>(list.size() - 1)))]};
}

/// A line with 3 % of doubt in either parameter, and 2 % between sizes.
Fit fit_of(double alpha, double beta) {
  Fit fit;
  fit.curve = Curve{Seconds{alpha}, SecondsPerByte{beta}};
  fit.smallest = Bytes{4};
  fit.largest = Bytes{std::uint64_t{1} << 32};
  fit.covariance = {9e-4 * alpha * alpha, 0, 0, 9e-4 * beta * beta};
  fit.deviation = {0.02, 0.02};
  return fit;
}

Cluster cluster_of(int workers) {
  Cluster cluster;
  cluster.name = "bench";
  cluster.formula_deviation = {0.1, 0.1};
  cluster.plan_deviation = 0.03;
  for (int i = 0; i < workers; ++i) cluster.hosts.push_back({"h" + std::to_string(i), 1});
  const double alpha = 2e-5, beta = 8e-10;  // 10 Gb/s
  cluster.links[LinkClass::kInterHost] = {fit_of(alpha, beta), fit_of(alpha / 5, beta), {}};
  for (const int n : {4, workers}) {
    const double moved = 2.0 * (n - 1) / n;
    cluster.operations.push_back({AllReduce{}, Operation::kAllReduce, n,
                                  fit_of(2 * (n - 1) * alpha, moved * beta),
                                  fit_of(0.4 * (n - 1) * alpha, moved * beta)});
    cluster.operations.push_back({ParameterServer{n}, Operation::kPushPull, n,
                                  fit_of(n * alpha, moved * beta), fit_of(0.4 * n * alpha, moved * beta)});
  }
  cluster.reduce_seconds_per_byte = {1e-10, 1e-11};
  cluster.copy_seconds_per_byte = {5e-11, 5e-12};
  cluster.jitter_seconds = {1e-4, 2e-5};
  return cluster;
}

/// Prints one line and says whether the target is met.
bool answer_line(const std::string& name, const Profile& profile, int workers, int repetitions, double limit,
                 double& median) {
  const Cluster cluster = cluster_of(workers);
  tuner::Answer answer;
  const Times times = times_of(repetitions, [&] { answer = tuner::tune(profile, cluster); });
  median = times.median;
  const double gap = answer.ranking.front().gap;
  const bool met = limit == 0 || median <= limit;
  fmt::print("{:<22} {:>7} {:>8} {:>10.2f} ms {:>10.2f} ms {:>9} {:>8.2f} %{}\n", name,
             profile.tensor_count(), workers, 1e3 * times.median, 1e3 * times.p95,
             limit > 0 ? fmt::format("{:.0f} ms", 1e3 * limit) : "", 100 * gap, met ? "" : "  MISSED");
  return met;
}

Profile many_tensors(int tensors) {
  return synthetic_profile(tensors, Bytes{40'000}, Seconds{0.2}, Seconds{0.4}, 1);
}

struct Speed {
  std::string name;
  double events_per_second = 0;
};

std::vector<Speed> simulator_speeds(int repetitions) {
  const Profile profile = *shipped_profile("bert_large");
  const Cluster cluster = cluster_of(32);
  const tuner::Planning job(profile, cluster, 32, {AllReduce{}, ParameterServer{32}});
  std::vector<Speed> speeds;
  for (const char* name : {"wfbp-a2a", "wfbp-ps", "bytescheduler-ps", "dear"}) {
    const tuner::Method& method = *tuner::find_method(name);
    const auto& option = job.roads[method.architecture == tuner::Architecture::kAllReduce ? 0 : 1];
    const FlatPlan plan(method.build(job, option), job.work);
    Simulator simulator(job.work);
    constexpr int kRuns = 2000;
    const Times times = times_of(repetitions, [&] {
      for (int i = 0; i < kRuns; ++i) simulator.run(plan, option.cost);
    });
    const double events =
        kRuns * static_cast<double>(plan.sequence.empty() ? plan.messages() : plan.sequence.size());
    speeds.push_back({name, events / times.median});
    fmt::print("{:<22} {:>6} messages {:>8.1f} million events/s\n", name, plan.messages(),
               1e-6 * events / times.median);
  }
  return speeds;
}

/// A question whose instructions are counted.
struct Case {
  std::string_view name;
  Profile profile;
  int workers = 0;
};

std::optional<Case> case_of(std::string_view name) {
  if (name == "resnet50-32") return Case{name, *shipped_profile("resnet50"), 32};
  if (name == "bert-large-32") return Case{name, *shipped_profile("bert_large"), 32};
  if (name == "tensors10000-2048") return Case{name, many_tensors(10'000), 2048};
  return {};
}

int answer_once(std::string_view name) {
  const std::optional<Case> made = case_of(name);
  if (!made) {
    fmt::print(stderr, "planning: --once {}: must be resnet50-32, bert-large-32 or tensors10000-2048\n",
               name);
    return 2;
  }
  const tuner::Answer answer = tuner::tune(made->profile, cluster_of(made->workers));
  const tuner::Entry& chosen = answer.ranking[answer.chosen];
  fmt::print("chosen={} seconds={:.17g} plan={}\n", chosen.method, chosen.prediction.iteration.count(),
             digest(chosen.plan));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  int repetitions = 9;
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::string_view(argv[i]) == "--repetitions") repetitions = std::max(1, std::atoi(argv[i + 1]));
    if (std::string_view(argv[i]) == "--once") return answer_once(argv[i + 1]);
  }
  fmt::print("{:<22} {:>7} {:>8} {:>13} {:>13} {:>9} {:>10}\n", "full answer", "tensors", "workers", "median",
             "p95", "target", "gap");
  double resnet = 0, bert = 0, huge = 0, ignored = 0;
  bool met = answer_line("ResNet-50", *shipped_profile("resnet50"), 32, repetitions, kResNetSeconds, resnet);
  met = answer_line("BERT-Large", *shipped_profile("bert_large"), 32, repetitions, kBertSeconds, bert) && met;
  for (const int tensors : kUntargeted) {
    answer_line("equal tensors", many_tensors(tensors), 2048, std::min(repetitions, 3), 0, ignored);
  }
  met = answer_line("equal tensors", many_tensors(10'000), 2048, std::min(repetitions, 3), kHugeSeconds,
                    huge) &&
        met;
  fmt::print("\nsimulator\n");
  double slowest = 1e300;
  for (const Speed& speed : simulator_speeds(repetitions))
    slowest = std::min(slowest, speed.events_per_second);
  met = met && slowest >= kEventsPerSecond;
  fmt::print(
      "RESULT resnet50_seconds={:.5f} bert_large_seconds={:.5f} tensors10000_seconds={:.4f} "
      "slowest_events_per_second={:.3g} excluded=answers:{}(no-target) met={}\n",
      resnet, bert, huge, slowest, kUntargeted.size(), met ? "yes" : "no");
  return met ? 0 : 1;
}
