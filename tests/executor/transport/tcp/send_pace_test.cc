#include "executor/transport/tcp/send_pace.h"

#include <gtest/gtest.h>

namespace commtune::tcp {
namespace {

constexpr double kBurst = 10240, kBurstsPerSecond = 1024;

TEST(SendPace, LeavesShortWaysTheirRate) {
  // 64 KiB, 32 KiB or 16 KiB a burst, whatever the rate.
  for (const unsigned round_trip : {0U, 100U, 600U, 1500U})
    EXPECT_EQ(least_rate(round_trip), 0) << round_trip;
}

TEST(SendPace, SendsBurstsWorthTheirPacketsOverLongWays) {
  // Eight halvings in 4.1 ms leave 256 B of the 64 KiB; the rate brings the rest.
  EXPECT_EQ(least_rate(4100), (kBurst - 256) * kBurstsPerSecond);
  EXPECT_NEAR(least_rate(1'000'000), kBurst * kBurstsPerSecond, 1);
  EXPECT_LE(least_rate(2000), least_rate(4000));
}

}  // namespace
}  // namespace commtune::tcp
