#include "tests/cluster/link_clock.h"

#include <gtest/gtest.h>

namespace commtune::cluster {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

constexpr std::int64_t kGigabit = 125'000'000;  // bytes per second

// 1538 B * 8 bit / 1 Gb/s = 12.304 us
TEST(LinkClock, SerialisesAtItsRate) { EXPECT_EQ(LinkClock(kGigabit).duration(1538), nanoseconds(12'304)); }

// 1 B at 3 B/s is 1/3 s = 333,333,333,333.33 ps
TEST(LinkClock, RoundsUpToAPicosecond) { EXPECT_EQ(LinkClock(3).duration(1), Time{333'333'333'334}); }

// Two frames of 1250 B (10 us each) at t = 0 leave during [0, 10] and [10, 20]; one at t = 50 finds the link
// idle.
TEST(LinkClock, SendsOneAfterTheOther) {
  LinkClock clock(kGigabit);
  EXPECT_EQ(clock.send(microseconds(0), 1250), (Passage{microseconds(0), microseconds(10)}));
  EXPECT_EQ(clock.send(microseconds(0), 1250), (Passage{microseconds(10), microseconds(20)}));
  EXPECT_EQ(clock.send(microseconds(50), 1250), (Passage{microseconds(50), microseconds(60)}));
  EXPECT_EQ(clock.free_at(), microseconds(60));
}

// 2500 B take 20 us; after 5 us three quarters are left.
TEST(LinkClock, CountsWhatIsNotSentYet) {
  LinkClock clock(kGigabit);
  clock.send(microseconds(0), 2500);
  EXPECT_EQ(clock.backlog(microseconds(5)), 1875);
  EXPECT_EQ(clock.backlog(microseconds(20)), 0);
  EXPECT_EQ(clock.backlog(microseconds(30)), 0);
}

// 1250 B promised for 10 us stay so; the next 1250 B at a tenth of the rate take 100 us.
TEST(LinkClock, KeepsPromisesWhenItsRateChanges) {
  LinkClock clock(kGigabit);
  clock.send(microseconds(0), 1250);
  clock.set_bytes_per_second(kGigabit / 10);
  EXPECT_EQ(clock.send(microseconds(0), 1250), (Passage{microseconds(10), microseconds(110)}));
}

}  // namespace
}  // namespace commtune::cluster
