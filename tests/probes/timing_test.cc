#include "probes/timing.h"

#include <gmock/gmock.h>

namespace commtune::probes {
namespace {

Report report(std::int64_t started, std::initializer_list<std::int64_t> ends) {
  Report result;
  result.head.started = Nanoseconds{started};
  for (const std::int64_t end : ends) result.ends.push_back(Nanoseconds{end});
  return result;
}

TEST(AloneSeconds, CountFromTheLastArrivalToTheLastEnd) {
  // Rank 1 came at 1500, rank 0 left last at 4500: 3000 ns, though rank 0 took 3500.
  const std::vector<Report> reports{report(1000, {4500}), report(1500, {4200})};
  EXPECT_NEAR(alone_seconds(reports), 3000e-9, 1e-15);
}

TEST(AloneSeconds, LeaveOutWhoTookNoPart) {
  const std::vector<Report> reports{report(1000, {2000}), report(0, {})};
  EXPECT_NEAR(alone_seconds(reports), 1000e-9, 1e-15);
}

TEST(StreamedSeconds, AreTheStepsBetweenEndsOnceAllAreUnderWay) {
  // Two in flight; messages end on the last rank at 10, 20, 30, 40: 10 each, and (40 - 20) / 2 = 10.
  const std::vector<Report> reports{report(1, {9, 20, 28, 40}), report(1, {10, 18, 30, 38})};
  EXPECT_NEAR(streamed_seconds(reports, 2), 10e-9, 1e-15);
}

TEST(StreamedSeconds, DoNotCountAFairShareTwice) {
  // Two at a time share their way evenly and end together, at 20 and 40: still 10 each.
  const std::vector<Report> reports{report(1, {20, 20, 40, 40})};
  EXPECT_NEAR(streamed_seconds(reports, 2), 10e-9, 1e-15);
}

TEST(ArrivalSeconds, AreTheSlowerEnds) {
  const std::vector<Report> reports{report(1, {10, 20, 30}), report(1, {10, 30, 50})};
  EXPECT_NEAR(arrival_seconds(reports, 1), 20e-9, 1e-15);
}

TEST(HalfRoundTrips, AreHalfOfEachDuration) {
  EXPECT_THAT(half_round_trips(report(1, {400, 600})),
              testing::ElementsAre(testing::DoubleNear(200e-9, 1e-15), testing::DoubleNear(300e-9, 1e-15)));
}

}  // namespace
}  // namespace commtune::probes
