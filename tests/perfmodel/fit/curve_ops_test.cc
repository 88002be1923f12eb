#include "perfmodel/fit/curve_ops.h"

#include <gtest/gtest.h>

#include <random>

namespace commtune {
namespace {

Curve random_curve(std::mt19937_64& random) {
  std::uniform_real_distribution<double> unit(0, 1);
  std::vector<CurvePiece> pieces;
  double ended = 0;
  std::uint64_t from = 0;
  const int count = 1 + static_cast<int>(random() % 3);
  for (int i = 0; i < count; ++i) {
    const double beta = 1e-9 * unit(random);
    const double alpha = std::max(0.0, ended - beta * static_cast<double>(from)) + 1e-5 * unit(random);
    pieces.push_back({Bytes{from}, Seconds{alpha}, SecondsPerByte{beta}});
    const std::uint64_t next = from + 1 + random() % 1'000'000;
    ended = alpha + beta * static_cast<double>(next);
    from = next;
  }
  return Curve{std::move(pieces)};
}

TEST(CurveOps, AgreeWithPointwiseArithmetic) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 500; ++round) {
    const Curve a = random_curve(random), b = random_curve(random);
    const double share = std::uniform_real_distribution<double>(0.01, 3)(random);
    const Curve added = sum(a, b), high = upper(a, b), low = lower(a, b), part = of_share(a, share);
    for (int i = 0; i < 50; ++i) {
      const Bytes m{random() % 4'000'000};
      const double x = a(m).count(), y = b(m).count();
      // A breakpoint may move by less than one byte, so allow that byte's worth.
      EXPECT_NEAR(added(m).count(), x + y, 1e-12);
      EXPECT_NEAR(high(m).count(), std::max(x, y), 2e-9);
      EXPECT_NEAR(low(m).count(), std::min(x, y), 2e-9);
      EXPECT_NEAR(times(a, 3)(m).count(), 3 * x, 1e-12);
    }
    // A line through zero stays exact; a piecewise curve is exact away from its breakpoints.
    EXPECT_NEAR(part(Bytes{0}).count(), a(Bytes{0}).count(), 1e-12);
  }
}

TEST(CurveOps, ShareMovesBreakpoints) {
  const Curve curve{{{0_B, Seconds{1e-6}, {2e-9}}, {1000_B, Seconds{3e-6}, {1e-9}}}};
  const Curve half = of_share(curve, 0.5);
  EXPECT_NEAR(half(1000_B).count(), curve(500_B).count(), 1e-15);
  EXPECT_NEAR(half(4000_B).count(), curve(2000_B).count(), 1e-15);
  EXPECT_EQ(half.pieces()[1].from, 2000_B);
}

TEST(CurveOps, BreakpointsAreNotRoundedPastEachOther) {
  // At a quarter share they fall on 26.5 B, rounded up for a steeper piece, and 26.75 B, down for a flatter
  // one.
  const Curve curve{{{Bytes{0}, Seconds{1e-6}, SecondsPerByte{1e-9}},
                     {Bytes{106}, Seconds{2e-6}, SecondsPerByte{5e-9}},
                     {Bytes{107}, Seconds{4e-6}, SecondsPerByte{2e-9}}}};
  const Curve share = of_share(curve, 4);
  ASSERT_EQ(share.pieces().size(), 2U);
  EXPECT_EQ(share.pieces()[1].from, Bytes{27});
  EXPECT_NEAR(share(Bytes{1000}).count(), curve(Bytes{4000}).count(), 1e-15);
}

TEST(CurveOps, CurvesThatPartStayApart) {
  // The same up to a breakpoint, where rounding leaves one above the other, and then ever further apart.
  for (std::uint64_t size = 1000; size < 2'000'000; size = size * 17 / 16 + 3) {
    const Bytes at{size};
    const Curve slow{{{0_B, Seconds{9e-3}, SecondsPerByte{60e-9}},
                      {at, Seconds{9e-3} + SecondsPerByte{10e-9} * at, SecondsPerByte{50e-9}}}};
    const SecondsPerByte rate{2e-9};
    const Curve fast{{{0_B, Seconds{9e-3}, SecondsPerByte{60e-9}}, {at, slow(at) - rate * at, rate}}};
    const Bytes beyond{16 * size};
    EXPECT_DOUBLE_EQ(upper(slow, fast)(beyond).count(), slow(beyond).count()) << size;
    EXPECT_DOUBLE_EQ(upper(fast, slow)(beyond).count(), slow(beyond).count()) << size;
    EXPECT_DOUBLE_EQ(lower(slow, fast)(beyond).count(), fast(beyond).count()) << size;
    EXPECT_DOUBLE_EQ(lower(fast, slow)(beyond).count(), fast(beyond).count()) << size;
  }
}

TEST(CurveOps, EmptyCurvesAreNeutral) {
  const Curve line{Seconds{1}, SecondsPerByte{2}};
  EXPECT_EQ(sum(line, Curve{})(3_B), line(3_B));
  EXPECT_EQ(upper(Curve{}, line)(3_B), line(3_B));
  EXPECT_EQ(lower(Curve{}, line)(3_B), Seconds{0});
}

TEST(CurveOps, RecalibrationNeverMakesACostFall) {
  // Latencies cut to a tenth would let the second piece start below the first one's end.
  const Curve curve{{{0_B, Seconds{1e-6}, {2e-9}}, {1000_B, Seconds{3e-6}, {1e-9}}}};
  const Curve other = recalibrated(curve, 0.1, 1);
  EXPECT_GE(other(1000_B), other(999_B));
}

TEST(CurveOps, KnowWhatAByteCostsAtLeast) {
  // The longer of 6 us and 8 ns/B: equal at 750 B. No line from 6 us lies below it but the flat one.
  const Curve longer =
      upper(Curve{Seconds{6e-6}, SecondsPerByte{0}}, Curve{Seconds{0}, SecondsPerByte{8e-9}});
  EXPECT_DOUBLE_EQ(least_time_per_byte(longer).value, 8e-9);
  EXPECT_NEAR(start_up_beside(SecondsPerByte{8e-9}, longer).count(), 0, 1e-15);
  EXPECT_NEAR(start_up_beside(SecondsPerByte{4e-9}, longer).count(), 3e-6, 1e-15);
  EXPECT_DOUBLE_EQ(start_up_beside(SecondsPerByte{0}, longer).count(), 6e-6);
  // A line is its own floor; what a stretch costs at its far end counts.
  const Curve line{Seconds{6e-6}, SecondsPerByte{8e-9}};
  EXPECT_DOUBLE_EQ(least_time_per_byte(line).value, 8e-9);
  EXPECT_DOUBLE_EQ(start_up_beside(SecondsPerByte{8e-9}, line).count(), 6e-6);
  const Curve jump{{{0_B, Seconds{0}, {1e-9}}, {1000_B, Seconds{4e-6}, {1e-9}}}};
  EXPECT_DOUBLE_EQ(least_time_per_byte(jump).value, 1e-9);
  EXPECT_EQ(least_time_per_byte(Curve{}).value, 0);
}

}  // namespace
}  // namespace commtune
