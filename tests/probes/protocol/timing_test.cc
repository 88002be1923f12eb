#include "probes/protocol/timing.h"

#include <gmock/gmock.h>

namespace commtune::probes {
namespace {

FollowerReport report(std::int64_t started, std::initializer_list<std::int64_t> ends) {
  FollowerReport result;
  result.head.started = Nanoseconds{started};
  for (const std::int64_t end : ends) result.ends.push_back(Nanoseconds{end});
  return result;
}

TEST(AloneSeconds, CountFromTheLastArrivalToTheLastEnd) {
  // Rank 1 came at 1500, rank 0 left last at 4500: 3000 ns, though rank 0 took 3500.
  const std::vector<FollowerReport> reports{report(1000, {4500}), report(1500, {4200})};
  EXPECT_NEAR(alone_seconds(reports), 3000e-9, 1e-15);
}

TEST(AloneSeconds, LeaveOutWhoTookNoPart) {
  const std::vector<FollowerReport> reports{report(1000, {2000}), report(0, {})};
  EXPECT_NEAR(alone_seconds(reports), 1000e-9, 1e-15);
}

TEST(AloneSeconds, CountTheStartOfWhoOnlySends) {
  // The sender came last, at 1800; it has no end of its own.
  const std::vector<FollowerReport> reports{report(1800, {}), report(1500, {2000, 4000})};
  EXPECT_NEAR(alone_seconds(reports), 2200e-9, 1e-15);
}

TEST(InARow, AreWhatEachOperationTakesLongerThanTheOneBefore) {
  // Rank 1 came last, at 1500, and left last but once; the sender has no ends, and rank 3 took no part.
  const std::vector<FollowerReport> reports{
      report(1000, {4500, 6000, 9000}), report(1500, {4200, 7000, 8000}), report(1200, {}), report(0, {})};
  EXPECT_THAT(in_a_row(reports),
              testing::ElementsAre(testing::DoubleNear(3000e-9, 1e-15), testing::DoubleNear(2500e-9, 1e-15),
                                   testing::DoubleNear(2000e-9, 1e-15)));
}

TEST(OneWaySeconds, CountFromTheSendersStartThoughTheReceiverCameLate) {
  // It came at 3500, when all but the last of the bytes were there: the link took 3000 ns, not 500.
  EXPECT_NEAR(one_way_seconds(report(1000, {}), report(3500, {3600, 4000})), 3000e-9, 1e-15);
  EXPECT_NEAR(one_way_seconds(report(1800, {}), report(1500, {4000})), 2200e-9, 1e-15);
}

TEST(SteadySeconds, AreWhatEachMessageMoreAdds) {
  // A latency of 50 and 10 a message: 50 + 2 * 10 = 70 and 50 + 6 * 10 = 110, so (110 - 70) / (6 - 2) = 10.
  EXPECT_NEAR(steady_seconds(70e-9, 2, 110e-9, 6), 10e-9, 1e-15);
}

TEST(SteadySeconds, AreABoundWhereTheStreamsCannotBeToldApart) {
  // 300 us of latency hide what 128 messages add: each takes no more than 301 us / 192 of the longer stream.
  EXPECT_NEAR(steady_seconds(300e-6, 64, 301e-6, 192), 301e-6 / 192, 1e-12);
  EXPECT_NEAR(steady_seconds(310e-6, 64, 301e-6, 192), 310e-6 / 192, 1e-12);  // a stall swapped them
}

TEST(HalfRoundTrips, AreHalfOfEachDuration) {
  EXPECT_THAT(half_round_trips(report(1, {400, 600})),
              testing::ElementsAre(testing::DoubleNear(200e-9, 1e-15), testing::DoubleNear(300e-9, 1e-15)));
}

}  // namespace
}  // namespace commtune::probes
