// Replays whose gradients lie on a GPU and whose layers are kernels, with several ranks.

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>

#include "executor/replay/make_replay.h"
#include "executor/replay/run.h"
#include "executor/session/session.h"
#include "perfmodel/base/error.h"
#include "tests/executor/random_plan.h"
#include "tests/gpu/gpu_ranks.h"

namespace commtune::tests {
namespace {

using ::testing::AllOf;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::ThrowsMessage;

class GpuReplayTest : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_gpu_ranks(); !why.empty()) GTEST_SKIP() << why;
  }
};

RunOptions short_run(Result result) {
  RunOptions options;
  options.device = DeviceKind::kCuda;
  options.iterations = 2;
  options.warmup = 1;
  options.check_iterations = 2;
  options.result = result;
  options.timeout = Seconds{60};
  options.chunk = Bytes{4096};
  return options;
}

/// Plans of one profile that take turns. The replay itself compares every element with the serial reference,
/// and throws.
void take_turns(const std::vector<RandomJob>& jobs, Result result) {
  const int workers = jobs.front().plan.workers;
  on_gpu_ranks(ranks_of(jobs.front().plan), [&](Transport& transport, Memory& /*memory*/) {
    const Profile& profile = jobs.front().profile;
    std::vector<PlannedRun> plans;
    plans.reserve(jobs.size());
    for (const RandomJob& job : jobs) plans.push_back({job.plan, short_run(result)});
    std::size_t reports = 0;
    TurnOptions turns;
    turns.rounds = 2;
    turns.finished = [&](std::size_t plan, const RunReport& report) {
      ++reports;
      if (transport.peers().rank != 0) return;
      SCOPED_TRACE(fmt::format("plan {}", plan));
      const auto compared = static_cast<std::uint64_t>(workers) * profile.tensor_count();
      EXPECT_EQ(report.check.tensors, compared * 2);
      EXPECT_EQ(report.check.spot_elements, compared * 3 * (1 + 1 + 2))
          << "warm-ups of both turns, and timed";
      EXPECT_EQ(report.iteration_seconds.size(), 2U);
    };
    turns.refused = [](std::size_t plan, const Refusal& refusal) {
      ADD_FAILURE() << "plan " << plan << ": " << refusal.text;
    };
    run_plans(transport, plans, profile, turns);
    EXPECT_EQ(reports, plans.size());
  });
}

/// All of one profile, of float32: every third one casts.
std::vector<RandomJob> jobs_of(int workers, const Road& road) {
  const Profile profile = profile_of({20'000, 1, 300, 2, 5000});
  std::vector<RandomJob> jobs;
  jobs.reserve(10);
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    jobs.push_back({profile, random_plan(seed, profile, workers, road)});
    if (seed % 3 == 0) jobs.back().plan.wire = WireFormat::kBfloat16;
  }
  return jobs;
}

TEST_P(GpuReplayTest, BringsEveryElementBackByNcclWhateverThePlan) {
  const std::vector<RandomJob> jobs = jobs_of(GetParam(), AllReduce{Collective::kLibrary});
  const auto any = [&](auto has) {
    return std::ranges::any_of(jobs, [&](const RandomJob& job) { return has(job.plan); });
  };
  ASSERT_TRUE(any([](const Plan& plan) { return !plan.sequence.empty(); })) << "none is decoupled";
  ASSERT_TRUE(any([](const Plan& plan) { return plan.release == Release::kBackward; }));
  ASSERT_TRUE(any([](const Plan& plan) { return plan.barrier == Barrier::kPerLayer; }));
  take_turns(jobs, Result::kMean);
}

TEST_P(GpuReplayTest, BringsEveryElementBackFromServersOnTheHost) {
  take_turns(jobs_of(GetParam(), ParameterServer{1, Placement::kDedicated, Assignment::kEven}), Result::kSum);
}

/// On the stand-in the device is then far behind the time line.
TEST_P(GpuReplayTest, TellsOfNothingOnceAnIterationHasEndedEarly) {
  setenv("COMMTUNE_STANDIN_LAUNCH_US", "20000", 1);
  const Profile profile = profile_of(std::vector<std::size_t>(40, 1000), Seconds{1e-3});
  const auto ends = ends_of_gpu_ranks(GetParam(), [&](Transport& transport, Memory& memory) {
    const Peers& peers = transport.peers();
    const auto replay = make_replay(profile, peers.rank, peers.size(), Result::kMean, memory);
    SessionOptions options;
    options.memory = &memory;
    options.workers = peers.size();
    options.timeout = Seconds{10};
    Session session(transport, layout_of(profile), replay->gradients(), options);
    const Plan plan = wait_free_plan(profile, peers.size(), AllReduce{Collective::kRing});
    session.adopt(plan);
    replay->follow(plan);
    replay->iterate(session, Compare::kEverything);
    if (peers.rank == 1) throw Error(ErrorCode::kInterrupted, "has left");
    EXPECT_THROW(replay->iterate(session, Compare::kEverything), Error);
    // The layer whose backward ends last has told of its gradient: none is still to do so.
    EXPECT_THAT([&] { session.ready(0); },
                ThrowsMessage<Error>(HasSubstr("gradient layer0.weight was ready already")));
  });
  unsetenv("COMMTUNE_STANDIN_LAUNCH_US");
  EXPECT_EQ(ends[0], "");
  EXPECT_EQ(ends[1], "has left");
}

INSTANTIATE_TEST_SUITE_P(Ranks, GpuReplayTest, ::testing::Values(2, 4),
                         [](const auto& test) { return fmt::format("{}", test.param); });

/// What launches cost does not add up. Alone: several ranks on one GPU take turns on it.
TEST(GpuReplay, LastsAsLongAsItsProfile) {
  if (const std::string why = why_no_gpu_ranks(); !why.empty()) GTEST_SKIP() << why;
  const Profile profile = profile_of(std::vector<std::size_t>(20, 1000), Seconds{2e-3});
  on_gpu_ranks(1, [&](Transport& transport, Memory& /*memory*/) {
    RunOptions options = short_run(Result::kMean);
    options.iterations = 7;
    const Plan plan = wait_free_plan(profile, 1, AllReduce{Collective::kRing});
    const RunReport report = run_plan(transport, plan, profile, options);
    const double layers = 20 * 2 * 2e-3;
    EXPECT_THAT(report.median_seconds, AllOf(Ge(layers * 0.99), Le(layers * 1.2)));
  });
}

}  // namespace
}  // namespace commtune::tests
