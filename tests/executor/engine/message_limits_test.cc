#include "executor/engine/message_limits.h"

#include <gtest/gtest.h>

#include "executor/engine/engine.h"
#include "executor/replay/run.h"
#include "executor/transport/tcp/tcp.h"
#include "tests/executor/random_plan.h"
#include "tests/executor/ranks.h"
#include "tests/executor/transport/conformance.h"

namespace commtune::tests {
namespace {

TEST(MessageLimits, FollowFromThePlan) {
  // Two messages of 4 kB on three ranks: 2 iterations * 2 stages * 2 * (8 kB + 2 * 3 * 64 B) = 67,072 B more.
  const Profile profile = profile_of({1000, 1000});
  const Plan plan = wait_free_plan(profile, 3, AllReduce{});
  const auto limits = [&](Bytes chunk) {
    return message_limits(plan, layout_of(profile),
                          make_settings(plan, profile.type, Result::kMean, with_chunk({}, chunk)));
  };
  EXPECT_EQ(limits({}).longest, 1_MiB);
  EXPECT_EQ(limits(3_MiB).longest, 3_MiB);
  EXPECT_EQ(limits({}).early, 4_MiB + 67'072_B);
}

TEST(MessageLimits, APlanWithLongPartsRunsOverSockets) {
  const Profile profile = profile_of({1'000'000});
  const Plan plan = wait_free_plan(profile, 2, AllReduce{Collective::kRecursiveDoubling});
  RunOptions options;
  options.iterations = 2;
  options.chunk = 4_MiB;
  options.timeout = Seconds{100};
  on_bootstraps(
      2,
      [&](const std::shared_ptr<Bootstrap>& bootstrap) {
        const auto transport = make_tcp_transport(bootstrap);
        EXPECT_EQ(run_plan(*transport, plan, profile, options).ranks.size(),
                  bootstrap->peers().rank == 0 ? 2U : 1U);
        synchronize(*transport);
      },
      2);
}

}  // namespace
}  // namespace commtune::tests
