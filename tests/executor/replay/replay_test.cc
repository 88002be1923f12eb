#include "executor/replay/replay.h"

#include <gtest/gtest.h>

namespace commtune {
namespace {

TEST(TimeLine, SleepsOnlyToCatchUp) {
  TimeLine line;
  line.begin();
  const Clock::time_point begin = line.now();
  line.advance(Seconds{3600});
  EXPECT_EQ(line.now() - begin, std::chrono::hours(1));
  EXPECT_LT(Clock::now(), line.now()) << "nobody waits for the end of this layer";

  line.begin();
  line.advance(Seconds{2e-3});
  line.advance(Seconds{3e-3});
  line.catch_up();
  EXPECT_GE(Clock::now(), line.now());
}

TEST(TimeLine, IsHeldUpByWhatComesLateAlone) {
  TimeLine line;
  line.begin();
  line.advance(Seconds{3600});
  const Clock::time_point ahead = line.now();
  line.restart();
  EXPECT_EQ(line.now(), ahead);
  line.begin();
  const Clock::time_point behind = line.now();
  while (Clock::now() == behind) {
  }
  line.restart();
  EXPECT_GT(line.now(), behind);
}

}  // namespace
}  // namespace commtune
