#include "api/rest/fair_semaphore.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <thread>
#include <vector>

#include "perfmodel/base/error.h"

namespace commtune::api::rest {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using testing::HasSubstr;

/// The code and the text of the Error that it throws.
template <typename Work>
std::pair<ErrorCode, std::string> refusal_of(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  ADD_FAILURE() << "not refused";
  return {};
}

TEST(Permit, IsWaitedForNoLongerThanAllowed) {
  FairSemaphore semaphore(1);
  std::optional<Permit> first(std::in_place, semaphore, hours(1));
  const auto [code, text] = refusal_of([&] { const Permit second(semaphore, milliseconds(1)); });
  EXPECT_EQ(code, ErrorCode::kUnavailable);
  EXPECT_THAT(text, HasSubstr("busy for 0.001 s (--compute-time)"));
  first.reset();
  const Permit third(semaphore, hours(1));
}

TEST(Permit, IsGivenInTheOrderOfAsking) {
  constexpr int kWaiting = 8;
  FairSemaphore semaphore(1);
  std::optional<Permit> first(std::in_place, semaphore, hours(1));
  std::vector<int> order;  // written by who has the place
  std::vector<std::thread> threads;
  for (int i = 0; i < kWaiting; ++i) {
    threads.emplace_back([&, i] {
      const Permit permit(semaphore, hours(1));
      order.push_back(i);
    });
    while (semaphore.waiting() != static_cast<std::size_t>(i) + 1) std::this_thread::yield();
  }
  first.reset();
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(order, testing::ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST(Permit, GoesPastThoseWhoGaveUp) {
  FairSemaphore semaphore(1);
  std::optional<Permit> first(std::in_place, semaphore, hours(1));
  EXPECT_FALSE(semaphore.take(milliseconds(0)));
  EXPECT_EQ(semaphore.waiting(), 0);
  first.reset();
  const Permit second(semaphore, hours(1));
}

TEST(TimeLimit, EndsWorkThatTakesLonger) {
  const std::atomic<bool> stopping = false;
  time_limit(hours(1), stopping)(0.5);
  const auto [code, text] = refusal_of([&] { time_limit(milliseconds(0), stopping)(0.25); });
  EXPECT_EQ(code, ErrorCode::kBadInput);
  EXPECT_THAT(text, HasSubstr("longer than the 0 s"));
  EXPECT_THAT(text, HasSubstr("25 % was done"));
}

TEST(TimeLimit, IsLookedAtWithinAPointToo) {
  std::vector<double> told;
  tuner::Watch watch = [&](double fraction) {
    told.push_back(fraction);
    if (told.size() == 3) throw Error(ErrorCode::kBadInput, "too long");
  };
  const tuner::OutOfTime within = within_points(watch);
  watch(0.5);
  EXPECT_FALSE(within());
  EXPECT_EQ(refusal_of([&] { within(); }).second, "too long");
  EXPECT_THAT(told, testing::ElementsAre(0.5, 0.5, 0.5)) << "how far it was at the point's beginning";
}

TEST(TimeLimit, OfAPlanEndsAtItsMoment) {
  std::atomic<bool> stopping = false;
  std::chrono::steady_clock::time_point now{};
  const Clock clock = [&now] { return now; };
  const tuner::OutOfTime out = out_of_time_at(now + milliseconds(5), clock, stopping);
  EXPECT_FALSE(out());
  now += milliseconds(5);
  EXPECT_TRUE(out());
  stopping = true;
  EXPECT_EQ(refusal_of([&] { out(); }).first, ErrorCode::kInterrupted);
}

TEST(TimeLimit, EndsWorkOfAServiceThatStops) {
  const std::atomic<bool> stopping = true;
  EXPECT_EQ(refusal_of([&] { time_limit(hours(1), stopping)(0); }).first, ErrorCode::kInterrupted);
}

}  // namespace
}  // namespace commtune::api::rest
