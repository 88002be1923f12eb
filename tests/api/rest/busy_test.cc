#include "api/rest/busy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "perfmodel/error.h"

namespace commtune::api::rest {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using testing::HasSubstr;

/// The code and the text of the Error that it throws.
template <typename Work>
std::pair<ErrorCode, std::string> refusal(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  ADD_FAILURE() << "not refused";
  return {};
}

TEST(Permit, IsWaitedForNoLongerThanAllowed) {
  std::counting_semaphore<> places(1);
  std::optional<Permit> first(std::in_place, places, hours(1));
  const auto [code, text] = refusal([&] { const Permit second(places, milliseconds(1)); });
  EXPECT_EQ(code, ErrorCode::kUnavailable);
  EXPECT_THAT(text, HasSubstr("busy for 0.001 s (--compute-time)"));
  first.reset();
  const Permit third(places, hours(1));
}

TEST(TimeLimit, EndsWorkThatTakesLonger) {
  const std::atomic<bool> stopping = false;
  time_limit(hours(1), stopping)(0.5);
  const auto [code, text] = refusal([&] { time_limit(milliseconds(0), stopping)(0.25); });
  EXPECT_EQ(code, ErrorCode::kBadInput);
  EXPECT_THAT(text, HasSubstr("longer than the 0 s"));
  EXPECT_THAT(text, HasSubstr("25 % was done"));
}

TEST(TimeLimit, EndsWorkOfAServiceThatStops) {
  const std::atomic<bool> stopping = true;
  EXPECT_EQ(refusal([&] { time_limit(hours(1), stopping)(0); }).first, ErrorCode::kInterrupted);
}

}  // namespace
}  // namespace commtune::api::rest
