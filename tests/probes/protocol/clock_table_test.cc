#include "probes/protocol/clock_table.h"

#include <gtest/gtest.h>

namespace commtune::probes {
namespace {

/// A rank whose clock is `ahead`, reached after `there` and answering at once, back after `back`.
RoundTrip trip(Nanoseconds sent, Nanoseconds ahead, Nanoseconds there, Nanoseconds back) {
  const Nanoseconds received = sent + there + ahead;
  return {sent, received, received, sent + there + back};
}

TEST(ClockTable, FindsTheOffsetOfASymmetricWayExactly) {
  ClockTable clocks(2);
  clocks.add(1, trip(Nanoseconds{1000}, Nanoseconds{123'456}, Nanoseconds{200}, Nanoseconds{200}));
  EXPECT_EQ(clocks.ahead(1).count(), 123'456);
  EXPECT_EQ(clocks.round_trip(1).count(), 400);
}

TEST(ClockTable, TrustsTheFastestRoundTrip) {
  ClockTable clocks(2);
  clocks.add(1, trip(Nanoseconds{0}, Nanoseconds{500}, Nanoseconds{200}, Nanoseconds{200}));
  // Held up by 1000 on one way: its estimate would be off by 500.
  clocks.add(1, trip(Nanoseconds{5000}, Nanoseconds{500}, Nanoseconds{1200}, Nanoseconds{200}));
  EXPECT_EQ(clocks.ahead(1).count(), 500);
}

TEST(ClockTable, ForgetsWhatIsOld) {
  ClockTable clocks(2, std::chrono::seconds(5));
  clocks.add(1, trip(std::chrono::seconds(0), Nanoseconds{500}, Nanoseconds{200}, Nanoseconds{200}));
  // The clock has drifted, and the way is a little slower now.
  clocks.add(1, trip(std::chrono::seconds(10), Nanoseconds{900}, Nanoseconds{220}, Nanoseconds{220}));
  EXPECT_EQ(clocks.ahead(1).count(), 900);
}

TEST(ClockTable, KnowsTheSlowestOfTheFastest) {
  ClockTable clocks(3);
  clocks.add(1, trip(Nanoseconds{0}, Nanoseconds{0}, Nanoseconds{200}, Nanoseconds{200}));
  clocks.add(2, trip(Nanoseconds{0}, Nanoseconds{0}, Nanoseconds{900}, Nanoseconds{900}));
  clocks.add(2, trip(Nanoseconds{0}, Nanoseconds{0}, Nanoseconds{300}, Nanoseconds{300}));
  EXPECT_EQ(clocks.slowest_round_trip().count(), 600);
}

TEST(ClockTable, GivesZeroForWhomItNeverAsked) { EXPECT_EQ(ClockTable(2).ahead(0).count(), 0); }

}  // namespace
}  // namespace commtune::probes
