#include "perfmodel/base/student.h"

#include <gtest/gtest.h>

#include <cmath>

#include "perfmodel/base/normal.h"
#include "perfmodel/base/random.h"

namespace commtune {
namespace {

TEST(StudentT, HasTheValuesOfThePrintedTables) {
  // Abramowitz and Stegun, table 26.10.
  EXPECT_NEAR(student_t(1, 0.05), 12.706, 5e-4);
  EXPECT_NEAR(student_t(2, 0.05), 4.303, 5e-4);
  EXPECT_NEAR(student_t(3, 0.01), 5.841, 5e-4);
  EXPECT_NEAR(student_t(4, 0.001), 8.610, 5e-4);
  EXPECT_NEAR(student_t(10, 0.05), 2.228, 5e-4);
  EXPECT_NEAR(student_t(25, 0.01), 2.787, 5e-4);
  EXPECT_NEAR(student_t(120, 0.001), 3.373, 5e-4);
}

TEST(StudentT, IsExactWhereThereIsAClosedForm) {
  // One degree is Cauchy's distribution: outside = 1 - 2 atan(t) / pi. Two: outside = 1 - t / sqrt(2 + t^2).
  for (const double outside : {0.5, 1e-2, 1e-4, 1e-6}) {
    EXPECT_NEAR(student_t(1, outside) * std::tan(outside * std::acos(-1) / 2), 1, 1e-9) << outside;
    const double inside = 1 - outside;
    EXPECT_NEAR(student_t(2, outside), inside * std::sqrt(2 / (1 - inside * inside)),
                1e-6 * student_t(2, outside))
        << outside;
  }
}

TEST(StudentT, ApproachesTheNormalDistribution) { EXPECT_NEAR(student_t(2000, 0.05), kNormal95, 2e-3); }

TEST(StudentT, CoversTheMeanAsOftenAsItSays) {
  // 20,000 means of four values, at 10 %: 2,000 outside, with a standard deviation of 42.
  Random random(1);
  const double limit = student_t(3, 0.1);
  int outside = 0;
  for (int i = 0; i < 20'000; ++i) {
    double sum = 0, squares = 0;
    for (int j = 0; j < 4; ++j) {
      const double value = random.normal();
      sum += value;
      squares += value * value;
    }
    const double error = std::sqrt((squares - sum * sum / 4) / 3 / 4);
    if (std::abs(sum / 4) > limit * error) ++outside;
  }
  EXPECT_NEAR(outside, 2000, 4 * 42);
}

}  // namespace
}  // namespace commtune
