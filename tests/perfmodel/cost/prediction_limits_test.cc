#include "perfmodel/cost/prediction_limits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "perfmodel/fit/fit.h"

namespace commtune {
namespace {

Fit line_with_doubt() {
  // 1 ms and 1 ns/B up to 1 MB, known to 10 % of either, independently.
  Fit fit;
  fit.curve = Curve{Seconds{1e-3}, SecondsPerByte{1e-9}};
  fit.largest = Bytes{1'000'000};
  fit.covariance = {1e-8, 0, 0, 1e-20};
  return fit;
}

TEST(PredictionLimit, IsWhatTheCovarianceLeavesOpen) {
  // Nothing: 1 ms -+ 1.645 * 0.1 ms. At 1 MB: 2 ms -+ 1.645 * 0.1 ms * sqrt(2).
  const Curve least = prediction_limit(line_with_doubt(), Limit::kLower);
  const Curve most = prediction_limit(line_with_doubt(), Limit::kUpper);
  EXPECT_NEAR(least(0_B).count(), 0.8355e-3, 1e-7);
  EXPECT_NEAR(most(0_B).count(), 1.1645e-3, 1e-7);
  EXPECT_NEAR(least(Bytes{1'000'000}).count(), 1.7674e-3, 1e-7);
  EXPECT_NEAR(most(Bytes{1'000'000}).count(), 2.2326e-3, 1e-7);
}

TEST(PredictionLimit, IsWhatTheSamplesLeaveUnexplainedWhereThatIsMore) {
  Fit fit = line_with_doubt();
  fit.quality.p90_relative = 0.3;
  EXPECT_NEAR(prediction_limit(fit, Limit::kLower)(0_B).count(), 0.7e-3, 1e-9);
  EXPECT_NEAR(prediction_limit(fit, Limit::kUpper)(Bytes{1'000'000}).count(), 2.6e-3, 1e-9);
  fit.quality.p90_relative = 0.01;
  EXPECT_NEAR(prediction_limit(fit, Limit::kLower)(0_B).count(), 0.8355e-3, 1e-7);
}

TEST(PredictionLimit, IsTheCurveWhereNothingIsInDoubt) {
  Fit fit = line_with_doubt();
  fit.covariance.clear();
  EXPECT_EQ(prediction_limit(fit, Limit::kLower)(12345_B), fit.curve(12345_B));
  EXPECT_TRUE(prediction_limit(Fit{}, Limit::kUpper).empty());
}

TEST(PredictionLimit, NeverPromisesTimeBack) {
  Fit fit = line_with_doubt();
  fit.quality.p90_relative = 2;
  EXPECT_EQ(prediction_limit(fit, Limit::kLower)(Bytes{1'000'000}).count(), 0);
}

TEST(StandardError, IsOfThePieceThatHoldsAtASizeAndOfWhatSamplesLeaveOpen) {
  Fit fit = line_with_doubt();
  // 0.1 ms and 1e-10 s/B * 1 MB = 0.1 ms, independent: 0.1 ms * sqrt(2).
  EXPECT_NEAR(standard_error(fit, Bytes{1'000'000}).count(), 1e-4 * std::sqrt(2), 1e-15);
  // 3 % of the start-up of 1 ms and 5 % of the 1 ms of bytes are 0.08 ms beside that.
  fit.deviation = {0.03, 0.05};
  EXPECT_NEAR(standard_error(fit, Bytes{1'000'000}).count(), std::hypot(1e-4 * std::sqrt(2), 8e-5), 1e-15);
  fit.covariance.clear();
  EXPECT_NEAR(standard_error(fit, Bytes{1'000'000}).count(), 8e-5, 1e-15);
}

/// A fit of up to three pieces to samples that scatter.
Fit random_fit(std::mt19937_64& random) {
  std::normal_distribution<double> noise(0, 0.05);
  std::vector<Sample> samples;
  const double jump = 1e-4 * static_cast<double>(random() % 5);
  for (std::uint64_t size = 64; size <= (1U << 24); size *= 2) {
    const double cost = 5e-5 + 1e-9 * static_cast<double>(size) + (size > (1U << 16) ? jump : 0);
    samples.push_back({Bytes{size}, Seconds{cost * std::exp(noise(random))}, {}, 1});
  }
  return fit_curve(samples);
}

TEST(PredictionLimit, HoldsMostOfWhatTheFitsDoubtDraws) {
  std::mt19937_64 random(3);
  int inside = 0, all = 0;
  for (int round = 0; round < 30; ++round) {
    const Fit fit = random_fit(random);
    const Curve least = prediction_limit(fit, Limit::kLower), most = prediction_limit(fit, Limit::kUpper);
    const std::vector<Curve> draws = draw_curves(fit, 50, 1);
    for (std::uint64_t size = 64; size <= (1U << 24); size *= 4) {
      EXPECT_LE(least(Bytes{size}), fit.curve(Bytes{size}));
      EXPECT_GE(most(Bytes{size}), fit.curve(Bytes{size}));
      all += static_cast<int>(draws.size());
      inside += static_cast<int>(std::ranges::count_if(draws, [&](const Curve& drawn) {
        return least(Bytes{size}) <= drawn(Bytes{size}) && drawn(Bytes{size}) <= most(Bytes{size});
      }));
    }
  }
  EXPECT_GE(inside, all * 9 / 10);
}

TEST(AtLimits, MovesFitsAndScalars) {
  Cluster cluster;
  cluster.links[LinkClass::kInterHost].alone = line_with_doubt();
  cluster.operations.push_back({AllReduce{}, Operation::kAllReduce, 4, line_with_doubt(), line_with_doubt()});
  cluster.jitter_seconds = {1e-4, 1.96e-5};
  cluster.contention = {0.1, 0.5};
  const Cluster least = at_limits(cluster, Limit::kLower), most = at_limits(cluster, Limit::kUpper);
  for (const Curve& curve : {least.links.at(LinkClass::kInterHost).alone.curve,
                             least.operations[0].alone.curve, least.operations[0].streamed.curve}) {
    EXPECT_NEAR(curve(0_B).count(), 0.8355e-3, 1e-7);
  }
  EXPECT_NEAR(least.jitter_seconds.value, 1e-4 - 1.645e-5, 1e-8);
  EXPECT_NEAR(most.jitter_seconds.value, 1e-4 + 1.645e-5, 1e-8);
  EXPECT_EQ(least.contention.value, 0);
  EXPECT_TRUE(least.operations[0].alone.covariance.empty());
}

}  // namespace
}  // namespace commtune
