#include "perfmodel/fit/curve.h"

#include <gmock/gmock.h>

#include "tests/perfmodel/throws.h"

namespace commtune {
namespace {

using testing::HasSubstr;

TEST(Curve, CostsNothingByDefault) {
  const Curve curve;
  EXPECT_TRUE(curve.empty());
  EXPECT_EQ(curve(96_MiB).count(), 0);
  EXPECT_EQ(curve.least_alpha().count(), 0);
  EXPECT_EQ(curve.least_beta().value, 0);
}

TEST(Curve, OfOnePieceIsHockneys) {
  // 10 us + 1 MB * 1 ns/B = 1.01 ms
  EXPECT_DOUBLE_EQ(Curve(Seconds{10e-6}, SecondsPerByte{1e-9})(Bytes{1'000'000}).count(), 1.01e-3);
}

TEST(Curve, TakesTheNextPieceFromItsFirstByte) {
  const Curve curve({{0_B, Seconds{10e-6}, {1e-9}}, {1000_B, Seconds{100e-6}, {0.5e-9}}});
  EXPECT_DOUBLE_EQ(curve(999_B).count(), 10e-6 + 999e-9);
  EXPECT_DOUBLE_EQ(curve(1000_B).count(), 100e-6 + 500e-9);
  EXPECT_EQ(curve.least_beta().value, 0.5e-9);
}

TEST(Curve, IsNeverBelowItsLeastAlphaAndBeta) {
  // The second piece has the smaller intercept (a convex bend): the start-up of the first is what holds.
  const Curve curve({{0_B, Seconds{10e-6}, {1e-9}}, {1'000'000_B, Seconds{5e-6}, {1.005e-9}}});
  for (std::uint64_t m = 1; m < 100'000'000; m = m * 3 / 2 + 1) {
    const double bound = (curve.least_alpha() + curve.least_beta() * Bytes{m}).count();
    EXPECT_GE(curve(Bytes{m}).count(), bound * (1 - 1e-9));
  }
  EXPECT_EQ(curve.least_alpha().count(), 10e-6);
}

TEST(Curve, KeepsALeastTimePerByteOverAStretchThatCostsTheSame) {
  // 64 KB to 256 KB take 74 us each: no line from 10 us is steeper than the one to its far end.
  const Curve curve(
      {{0_B, Seconds{10e-6}, {1e-9}}, {64'000_B, Seconds{74e-6}, {0}}, {256'000_B, Seconds{0}, {1e-9}}});
  EXPECT_DOUBLE_EQ(curve.least_beta().value, 64e-6 / 256e3);
  EXPECT_EQ(Curve({{0_B, Seconds{10e-6}, {1e-9}}, {1000_B, Seconds{20e-6}, {0}}}).least_beta().value, 0);
}

TEST(Curve, RefusesWhatIsNoCost) {
  EXPECT_THAT(bad_input([] { Curve({{1_B, Seconds{0}, {0}}}); }), HasSubstr("first piece starts at 0 B"));
  EXPECT_THAT(bad_input([] { Curve({{0_B, Seconds{-1}, {0}}}); }), HasSubstr("alpha"));
  EXPECT_THAT(bad_input([] { Curve({{0_B, Seconds{0}, {-1}}}); }), HasSubstr("beta"));
  EXPECT_THAT(bad_input([] { Curve({{0_B, Seconds{0.0 / 0.0}, {0}}}); }), HasSubstr("alpha"));
  EXPECT_THAT(bad_input([] { Curve({{0_B, Seconds{1}, {0}}, {0_B, Seconds{1}, {0}}}); }), HasSubstr("above"));
  // 2 s at 9 B, then 1 s
  EXPECT_THAT(bad_input([] {
                Curve({{0_B, Seconds{2}, {0}}, {9_B, Seconds{1}, {0}}});
              }),
              HasSubstr("never falls"));
}

TEST(Fit, KnowsItsRange) {
  Fit fit;
  fit.smallest = 4_B;
  fit.largest = 1_MiB;
  EXPECT_TRUE(fit.covers(4_B));
  EXPECT_TRUE(fit.covers(1_MiB));
  EXPECT_FALSE(fit.covers(3_B));
  EXPECT_FALSE(fit.covers(2_MiB));
}

}  // namespace
}  // namespace commtune
