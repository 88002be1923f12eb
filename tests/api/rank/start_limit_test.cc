#include "api/rank/start_limit.h"

#include <gtest/gtest.h>

#include <thread>

namespace commtune::api {
namespace {

TEST(StartLimitDeathTest, EndsAProcessThatNeverGetsGoing) {
  EXPECT_EXIT(
      {
        const StartLimit limit(std::chrono::seconds{1});
        std::this_thread::sleep_for(std::chrono::minutes{10});
      },
      testing::ExitedWithCode(error_status(ErrorCode::kPeerLost).exit_status),
      "did not come together in time");
}

TEST(StartLimitDeathTest, LeavesOneThatDoesAlone) {
  EXPECT_EXIT(
      {
        { const StartLimit limit(std::chrono::seconds{1}); }
        std::this_thread::sleep_for(std::chrono::milliseconds{1500});
        _exit(0);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace commtune::api
