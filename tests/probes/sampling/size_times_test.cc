#include "probes/sampling/size_times.h"

#include <gtest/gtest.h>

#include <cmath>

namespace commtune::probes {
namespace {

TEST(SizeTimes, OfOneVisitAreAsSureAsItsRepetitions) {
  // Six sorted values: the 95 % interval of their median leaves none out, so it is their range.
  SizeTimes times;
  times.add(std::vector{10.0, 10.1, 9.9, 10.0, 10.1, 9.9}, Seconds{3});
  EXPECT_NEAR(times.median(), 10.0, 1e-12);
  EXPECT_NEAR(times.width(), 0.01, 1e-12);
  EXPECT_EQ(times.between_visits(), 0);
  EXPECT_TRUE(times.visited_once());
  EXPECT_EQ(times.left(), Seconds{3});
}

TEST(SizeTimes, OneStallAmongAFewRepetitionsDoesNotMakeThemUnsure) {
  // The range is 6 wide; the median distance of .1 from the median stands for a deviation of .178, the
  // median of eight for one of .079, and 1.96 times that is its half width.
  SizeTimes times;
  times.add(std::vector{10.0, 10.1, 9.9, 10.0, 16.0, 10.1, 9.9, 10.0}, Seconds{3});
  EXPECT_NEAR(times.median(), 10.0, 1e-12);
  EXPECT_NEAR(times.width(), 1.959964 * 1.253314 * 1.4826 * 1.2 * 0.1 / std::sqrt(8.0) / 10, 1e-8);
}

TEST(SizeTimes, OfVeryFewRepetitionsAreAsUnsureAsTheirRange) {
  SizeTimes times;
  times.add(std::vector{10.0, 10.0, 16.0}, Seconds{3});
  EXPECT_NEAR(times.width(), 0.3, 1e-12);
}

TEST(SizeTimes, OfVisitsThatDifferAreAsUnsureAsTheseDiffer) {
  // 10 and 12, each time without scatter: the median of both is 11, and may be off by 1.
  SizeTimes times;
  times.add(std::vector<double>(50, 10.0), Seconds{3});
  times.add(std::vector<double>(50, 12.0), Seconds{2});
  EXPECT_NEAR(times.median(), 11.0, 1e-12);
  EXPECT_NEAR(times.between_visits(), 1.0 / 11, 1e-12);
  EXPECT_NEAR(times.width(), 1.0 / 11, 1e-12);
  EXPECT_FALSE(times.visited_once());
  const Sample sample = times.sample(Bytes{64});
  EXPECT_EQ(sample.repetitions, 100);
  EXPECT_NEAR(sample.half_width.count(), 1.0, 1e-12);
}

TEST(SizeTimes, OfAnEarlierSessionAreAsSureAsItSaid) {
  const SizeTimes times({}, {Bytes{64}, Seconds{2}, Seconds{0.5}, 7});
  EXPECT_EQ(times.repetitions(), 7);
  EXPECT_NEAR(times.width(), 0.25, 1e-12);
  EXPECT_FALSE(times.visited_once());
  EXPECT_EQ(times.visits(), 0);
}

}  // namespace
}  // namespace commtune::probes
