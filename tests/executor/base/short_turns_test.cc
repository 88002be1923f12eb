#include "executor/base/short_turns.h"

#include <gtest/gtest.h>

#include <thread>

namespace commtune {
namespace {

TEST(ShortTurns, LastAsLongAsTheyAreAskedForAndAreOfThatThread) {
  std::thread([] {
    const std::uint64_t before = turn_of_thread(0);
    if (before == 0) GTEST_SKIP() << "needs Linux 6.12, which knows turns of a thread's own";
    {
      const ShortTurns turns;
      EXPECT_EQ(turn_of_thread(0), 100'000U);
    }
    EXPECT_EQ(turn_of_thread(0), before);
  }).join();
}

}  // namespace
}  // namespace commtune
