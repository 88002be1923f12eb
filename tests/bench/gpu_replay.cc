// Whether a replay on a GPU takes as long as its profile says, and whether plans whose costs were measured in
// the same run take as long as they are predicted to: ranks that share one GPU, whose messages travel over
// the loopback interface.
//
//   build/tests/bench/gpu_replay      status 1 where the target is missed, 77 where there is no GPU

#include <fmt/format.h>

#include <exception>
#include <memory>

#include "executor/memory/cuda/cuda_memory.h"
#include "executor/replay/make_replay.h"
#include "executor/replay/run.h"
#include "executor/session/session.h"
#include "perfmodel/base/error.h"
#include "perfmodel/shipped_profiles.h"
#include "tests/bench/gpu_bench.h"
#include "tests/executor/random_plan.h"
#include "tests/gpu/gpu_ranks.h"

namespace commtune::bench {
namespace {

constexpr int kIterations = 12;
/// Between an iteration without communication and the sum of its layers.
constexpr double kTarget = 0.01;

/// One rank: gradients are ready and are back, and nothing travels.
double seconds_of_iteration(Transport& transport, Memory& memory, const Profile& profile, double& aa) {
  const auto replay = make_replay(profile, 0, 1, Result::kSum, memory);
  SessionOptions options;
  options.memory = &memory;
  Session session(transport, layout_of(profile), replay->gradients(), options);
  const Plan plan = tests::wait_free_plan(profile, 1, AllReduce{Collective::kRing});
  session.adopt(plan);
  replay->follow(plan);
  std::vector<double> first;
  std::vector<double> second;
  for (int i = -2; i < kIterations; ++i) {
    const IterationTimes times = replay->iterate(session, Compare::kSpots);
    if (i >= 0) (i % 2 == 0 ? first : second).push_back(Seconds(times.end - times.start).count());
  }
  session.leave();
  aa = difference(first, second);
  first.insert(first.end(), second.begin(), second.end());
  return median_of(first);
}

double seconds_of_profile(const Profile& profile) {
  Seconds sum{};
  for (const auto& layer : profile.layers) sum += layer.backward + layer.update + layer.forward;
  return sum.count();
}

/// A whole run by NCCL, all elements compared in the first iteration.
void run_ranks(int ranks, const Profile& profile) {
  const auto ends = tests::ends_of_gpu_ranks(ranks, [&](Transport& transport, Memory& /*memory*/) {
    const Plan plan = tests::wait_free_plan(profile, ranks, AllReduce{Collective::kLibrary});
    RunOptions options;
    options.device = DeviceKind::kCuda;
    options.iterations = 6;
    options.warmup = 2;
    const RunReport report = run_plan(transport, plan, profile, options);
    if (transport.peers().rank != 0) return;
    fmt::print(
        "{} ranks: an iteration takes {:.1f} ms beside {:.1f} ms of layers; every element as it must be\n",
        ranks, report.median_seconds * 1e3, seconds_of_profile(profile) * 1e3);
    std::fflush(stdout);
  });
  for (const std::string& end : ends) {
    if (!end.empty()) throw Error(ErrorCode::kConflict, end);
  }
}

/// On one rank, in a process of its own: this one goes on to fork.
int judge_alone(const std::vector<std::string>& names) {
  const auto ends = tests::ends_of_gpu_ranks(1, [&](Transport& transport, Memory& memory) {
    double worst = 0;
    double worst_aa = 0;
    for (const std::string& name : names) {
      const Profile profile = *shipped_profile(name);
      double aa = 0;
      const double measured = seconds_of_iteration(transport, memory, profile, aa);
      const double wanted = seconds_of_profile(profile);
      fmt::print(
          "{:<10} {:>4} layers: {:>9.3f} ms of layers, {:>9.3f} ms replayed, {:+.2f} %, A/A {:.2f} %\n", name,
          profile.layers.size(), wanted * 1e3, measured * 1e3, (measured / wanted - 1) * 100, aa * 100);
      worst = std::max(worst, std::abs(measured / wanted - 1));
      worst_aa = std::max(worst_aa, aa);
    }
    const bool judged = !is_standin(dynamic_cast<const cuda::CudaMemory&>(memory).gpu());
    fmt::print("RESULT gpu_replay profiles={} worst_difference={:.4f} aa={:.4f} target={} excluded={}\n",
               names.size(), worst, worst_aa, kTarget, judged ? "none" : "all:stand-in");
    std::fflush(stdout);
    if (judged && worst > kTarget + 2 * worst_aa) throw Error(ErrorCode::kConflict, "the target is missed");
  });
  if (ends.front().empty()) return 0;
  fmt::print("{}\n", ends.front());
  return 1;
}

int run() {
  for (const int ranks : {2, 4}) run_ranks(ranks, *shipped_profile("resnet50"));
  return judge_alone({"resnet50", "bert_base"});
}

}  // namespace
}  // namespace commtune::bench

int main() {
  return commtune::bench::exit_status("gpu_replay", commtune::tests::why_no_gpu_ranks, commtune::bench::run);
}
