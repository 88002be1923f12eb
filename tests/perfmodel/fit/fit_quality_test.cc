#include "perfmodel/fit/fit_quality.h"

#include <gtest/gtest.h>

#include <array>

namespace commtune {
namespace {

TEST(FitQuality, CountsMissesInUnitsAndRelatively) {
  // Mean 7/3; unexplained 4 of 42/9. Relative misses 0, 0 and 1/2: the median is 0, the 90th percentile lies
  // eight tenths of the way from the second to the third.
  constexpr std::array measured{1.0, 2.0, 4.0}, predicted{1.0, 2.0, 2.0}, same{1.0, 1.0, 1.0};
  const FitQuality quality = fit_quality(measured, predicted, same);
  EXPECT_EQ(quality.samples, 3);
  EXPECT_NEAR(quality.r_squared, 1.0 / 7, 1e-12);
  EXPECT_DOUBLE_EQ(quality.median_relative, 0);
  EXPECT_DOUBLE_EQ(quality.p90_relative, 0.4);
}

TEST(FitQuality, OfEqualTimesIsPerfectOrNothing) {
  constexpr std::array measured{2.0, 2.0}, wrong{1.0, 3.0};
  EXPECT_DOUBLE_EQ(fit_quality(measured, measured, measured).r_squared, 1);
  EXPECT_DOUBLE_EQ(fit_quality(measured, wrong, measured).r_squared, 0);
}

}  // namespace
}  // namespace commtune
