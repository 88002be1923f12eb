#include "perfmodel/fit/segmentation.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "perfmodel/base/random.h"

namespace commtune {
namespace {

std::vector<FitPoint> sampled(const std::vector<double>& sizes, double (*cost)(double), double noise,
                              std::uint64_t seed) {
  Random random(seed);
  std::vector<FitPoint> points;
  points.reserve(sizes.size());
  for (const double size : sizes) {
    points.push_back({size, cost(size) * std::exp(noise * random.normal()), 0.01, 0});
  }
  set_units(points);
  return points;
}

std::vector<double> powers_of_two(int from, int to) {
  std::vector<double> sizes;
  for (int p = from; p <= to; ++p) {
    sizes.push_back(std::ldexp(1.0, p));
  }
  return sizes;
}

double line_cost(double m) { return 50e-6 + 1e-9 * m; }
double jump_cost(double m) { return m < 5000 ? 20e-6 + 2e-9 * m : 90e-6 + 1e-9 * m; }

TEST(RobustLine, PassesThroughExactPoints) {
  const auto points = sampled(powers_of_two(2, 20), line_cost, 0, 1);
  const Line line = robust_line(points, 1, 1.345);
  EXPECT_NEAR(line.alpha, 50e-6, 1e-12);
  EXPECT_NEAR(line.beta, 1e-9, 1e-16);
}

TEST(RobustLine, HardlyMovesForAnOutlier) {
  auto points = sampled(powers_of_two(2, 20), line_cost, 0, 1);
  points[9].time *= 5;
  const Line line = robust_line(points, 1, 1.345);
  EXPECT_NEAR(line.alpha / 50e-6, 1, 0.01);
  EXPECT_NEAR(line.beta / 1e-9, 1, 0.01);
}

TEST(RobustLine, HasNoNegativeParameter) {
  // Through (1, 1) and (2, 3) the free line has alpha = -1; falling times have beta < 0.
  const std::vector<FitPoint> steep{{1, 1, 0.01, 0.01}, {2, 3, 0.01, 0.03}};
  const std::vector<FitPoint> falling{{1, 3, 0.01, 0.01}, {2, 1, 0.01, 0.03}};
  EXPECT_EQ(robust_line(steep, 1, 1.345).alpha, 0);
  EXPECT_EQ(robust_line(falling, 1, 1.345).beta, 0);
}

TEST(NeighbourNoise, FindsTheNoiseDespiteAJumpAndAnOutlier) {
  // The jump and the outlier touch 5 of 23 triples: the median of all is the 64 % quantile of the
  // others, 1.36 times their median.
  for (const double noise : {0.003, 0.03}) {
    double sum = 0;
    constexpr int kTrials = 50;
    for (int trial = 0; trial < kTrials; ++trial) {
      auto points = sampled(powers_of_two(2, 26), jump_cost, noise, static_cast<std::uint64_t>(trial));
      points[20].time *= 3;
      sum += neighbour_noise(points) * 0.01;
    }
    EXPECT_NEAR(sum / kTrials / noise, 1.36, 0.15);
  }
  EXPECT_EQ(neighbour_noise(sampled({4, 8}, line_cost, 0, 1)), 0);
}

TEST(SetUnits, MeasuresAnOutlierWithItsNeighboursRod) {
  std::vector<FitPoint> points{{1, 4, 1, 0}, {2, 2, 1, 0}, {4, 90, 1, 0}, {8, 4, 0.5, 0}, {16, 1, 1, 0}};
  set_units(points);
  // 4 may not be above the 2 after it; 2 lies below 4 and 90; 90 above 2 and 4; 1 below the 4 before it.
  EXPECT_EQ(points[0].unit, 2);
  EXPECT_EQ(points[1].unit, 4);
  EXPECT_EQ(points[2].unit, 4);
  EXPECT_EQ(points[3].unit, 0.5 * 4);
  EXPECT_EQ(points[4].unit, 4);
}

TEST(Takeover, IsWhereTheLinesCross) {
  // 10 + m and 20 + m / 2 cross at m = 20: before it the second is dearer, so it may take over up to there.
  EXPECT_EQ(takeover({10, 1}, {20, 0.5}, 15, 30), 20);
  // 20 + m / 2 and 10 + m the other way round: from there on.
  EXPECT_EQ(takeover({20, 0.5}, {10, 1}, 15, 30), 20);
}

TEST(Takeover, OfAJumpIsInTheGeometricMiddle) { EXPECT_EQ(takeover({10, 1}, {50, 1}, 16, 64), 32); }

TEST(Takeover, LiesAboveTheLastPointBefore) {
  EXPECT_EQ(takeover({10, 1}, {50, 1}, 16, 17), 17);
  EXPECT_EQ(takeover({10, 1}, {50, 1}, 0, 1), 1);
}

/// The least loss of any two pieces of three distinct sizes, by trying every cut.
std::size_t brute_force_cut(const std::vector<FitPoint>& points, double sigma) {
  double least = std::numeric_limits<double>::infinity();
  std::size_t best = 0;
  for (std::size_t cut = 3; cut + 3 <= points.size(); ++cut) {
    double loss = 0;
    for (const auto& part : {std::span(points).first(cut), std::span(points).subspan(cut)}) {
      const Line line = robust_line(part, sigma, 1.345);
      for (const FitPoint& point : part) {
        loss += outlier_proof_loss(residual(point, line) / sigma);
      }
    }
    if (loss < least) {
      least = loss;
      best = cut;
    }
  }
  return best;
}

TEST(BestSegmentations, OfTwoPiecesEqualExhaustiveSearch) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const auto points = sampled(powers_of_two(2, 22), jump_cost, 0.05, seed);
    const auto found = best_segmentations(points, 1, 1.345, 2);
    // The last candidate of two pieces is the one without regard to falling costs.
    ASSERT_EQ(found.back().size(), 2U);
    EXPECT_EQ(found.back()[1], brute_force_cut(points, 1));
  }
}

TEST(BestSegmentations, KeepThreeDistinctSizesInAPiece) {
  const auto five = sampled(powers_of_two(2, 6), jump_cost, 0, 1);
  EXPECT_EQ(best_segmentations(five, 1, 1.345, 3), (std::vector<Segmentation>{{0}}));
  // Repeated sizes do not count twice.
  auto repeated = five;
  repeated.insert(repeated.end(), 3, repeated.back());
  EXPECT_EQ(best_segmentations(repeated, 1, 1.345, 3), (std::vector<Segmentation>{{0}}));
}

TEST(BestSegmentations, CopeWithThousandsOfPoints) {
  std::vector<double> sizes(3000);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    sizes[i] = 4.0 + 100.0 * static_cast<double>(i);
  }
  const auto points = sampled(sizes, jump_cost, 0.01, 1);
  const auto found = best_segmentations(points, 1, 1.345, 3);
  EXPECT_GE(found.size(), 2U);
}

}  // namespace
}  // namespace commtune
