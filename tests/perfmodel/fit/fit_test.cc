#include "perfmodel/fit/fit.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "perfmodel/base/random.h"
#include "tests/perfmodel/throws.h"

namespace commtune {
namespace {

using testing::HasSubstr;

/// `count` sizes evenly spread in log from 4 B to 96 MiB.
std::vector<Bytes> sizes(int count) {
  std::vector<Bytes> result;
  for (int i = 0; i < count; ++i) {
    const double share = static_cast<double>(i) / (count - 1);
    result.push_back(
        Bytes{static_cast<std::uint64_t>(std::round(4 * std::pow(96.0 * (1 << 20) / 4, share)))});
  }
  return result;
}

std::vector<Sample> samples_of(const Curve& truth, int count, double noise, std::uint64_t seed) {
  Random random(seed);
  std::vector<Sample> samples;
  for (const Bytes size : sizes(count)) {
    samples.push_back({size, truth(size) * std::exp(noise * random.normal()), Seconds{0}, 1});
  }
  return samples;
}

const FitOptions kNoBootstrap{.bootstrap = 0};

/// 1 Gb/s and 50 us: one line.
Curve line() { return {Seconds{50e-6}, SecondsPerByte{8e-9}}; }
/// Eager up to 64 KiB, then a handshake of 170 us.
Curve jump() { return Curve({{0_B, Seconds{30e-6}, {8e-9}}, {65'537_B, Seconds{200e-6}, {8e-9}}}); }
/// Four times the bandwidth from 32 KiB on, without a jump: 10 us + 32 KiB * 1.5 ns/B = 59.152 us.
Curve bend() { return Curve({{0_B, Seconds{10e-6}, {2e-9}}, {32_KiB, Seconds{59.152e-6}, {0.5e-9}}}); }
/// Two switches, as NCCL's protocols have them.
Curve three() {
  return Curve(
      {{0_B, Seconds{10e-6}, {2e-9}}, {4097_B, Seconds{40e-6}, {1e-9}}, {1_MiB, Seconds{300e-6}, {0.9e-9}}});
}

/// The share of `trials` noisy samplings whose fit has as many pieces as the truth.
double share_right(const Curve& truth, int count, double noise, int trials) {
  int right = 0;
  for (int trial = 0; trial < trials; ++trial) {
    const Fit fit =
        fit_curve(samples_of(truth, count, noise, static_cast<std::uint64_t>(trial)), kNoBootstrap);
    right += fit.curve.pieces().size() == truth.pieces().size() ? 1 : 0;
  }
  return static_cast<double>(right) / trials;
}

TEST(FitCurve, RecoversExactCurves) {
  for (const Curve& truth : {line(), jump(), bend(), three()}) {
    const Fit fit = fit_curve(samples_of(truth, 30, 0, 1), kNoBootstrap);
    ASSERT_EQ(fit.curve.pieces().size(), truth.pieces().size());
    for (std::size_t k = 0; k < truth.pieces().size(); ++k) {
      EXPECT_NEAR(fit.curve.pieces()[k].alpha / truth.pieces()[k].alpha, 1, 1e-4);
      EXPECT_NEAR(fit.curve.pieces()[k].beta.value / truth.pieces()[k].beta.value, 1, 1e-4);
    }
    EXPECT_GT(fit.quality.r_squared, 0.999999);
    EXPECT_LT(fit.quality.p90_relative, 1e-6);
    EXPECT_EQ(fit.quality.samples, 30);
    EXPECT_EQ(fit.smallest, 4_B);
    EXPECT_EQ(fit.largest, 96_MiB);
  }
}

TEST(FitCurve, KeepsOneLineOnePiece) {
  for (const int count : {6, 8, 12, 20, 50}) {
    for (const double noise : {0.003, 0.01, 0.05}) {
      EXPECT_GE(share_right(line(), count, noise, 100), 0.93) << count << " samples, noise " << noise;
    }
  }
}

TEST(FitCurve, FindsSwitches) {
  EXPECT_GE(share_right(jump(), 20, 0.01, 100), 0.95);
  EXPECT_GE(share_right(bend(), 12, 0.01, 100), 0.95);
  EXPECT_GE(share_right(three(), 20, 0.01, 100), 0.95);
}

TEST(FitCurve, PutsABendWhereItIs) {
  const Fit fit = fit_curve(samples_of(bend(), 40, 0.003, 7), kNoBootstrap);
  ASSERT_EQ(fit.curve.pieces().size(), 2U);
  EXPECT_NEAR(static_cast<double>(fit.curve.pieces()[1].from.count) / 32768, 1, 0.1);
}

TEST(FitCurve, PutsAJumpBetweenTheSamplesAroundIt) {
  const auto samples = samples_of(jump(), 40, 0.003, 7);
  const Fit fit = fit_curve(samples, kNoBootstrap);
  ASSERT_EQ(fit.curve.pieces().size(), 2U);
  const auto after =
      std::find_if(samples.begin(), samples.end(), [](const Sample& s) { return s.size >= 65'537_B; });
  EXPECT_GT(fit.curve.pieces()[1].from, (after - 1)->size);
  EXPECT_LE(fit.curve.pieces()[1].from, after->size);
}

TEST(FitCurve, PredictsSizesThatItHasNotSeen) {
  for (const Curve& truth : {line(), bend(), three()}) {
    std::vector<double> errors;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const Fit fit = fit_curve(samples_of(truth, 24, 0.02, seed), kNoBootstrap);
      for (const Bytes size : sizes(101)) {
        errors.push_back(std::abs(fit.curve(size) / truth(size) - 1));
      }
    }
    std::sort(errors.begin(), errors.end());
    EXPECT_LT(errors[errors.size() / 2], 0.01);
    EXPECT_LT(errors[errors.size() * 9 / 10], 0.03);
  }
}

TEST(FitCurve, LetsNoOutlierMoveIt) {
  int bought_a_piece = 0;
  for (const double factor : {0.2, 0.7, 1.5, 4.0, 30.0}) {
    for (const std::size_t where : {0U, 1U, 9U, 18U, 19U}) {
      auto samples = samples_of(line(), 20, 0.005, where);
      samples[where].time *= factor;
      const Fit fit = fit_curve(samples, kNoBootstrap);
      bought_a_piece += fit.curve.pieces().size() > 1 ? 1 : 0;
      for (const Bytes size : sizes(50)) {
        EXPECT_NEAR(fit.curve(size) / line()(size), 1, 0.02) << factor << " at " << where;
      }
    }
  }
  EXPECT_LE(bought_a_piece, 1);
}

TEST(FitCurve, DoesNotFavourSamplesThatCameOutShort) {
  // Errors relative to the measured time would pull a fit with noise of 20 % down by 2 * 0.2^2 = 8 %.
  double sum = 0;
  constexpr int kTrials = 40;
  for (std::uint64_t seed = 0; seed < kTrials; ++seed) {
    Random random(seed);
    std::vector<Sample> samples;
    for (const Bytes size : sizes(40)) {
      samples.push_back(
          {size, line()(size) * (1 + std::clamp(0.2 * random.normal(), -0.6, 0.6)), Seconds{0}, 1});
    }
    sum += fit_curve(samples, kNoBootstrap).curve(8_KiB) / line()(8_KiB);
  }
  EXPECT_NEAR(sum / kTrials, 1, 0.03);
}

TEST(FitCurve, NeverFallsAndIsNeverNegative) {
  Random random(5);
  for (int trial = 0; trial < 300; ++trial) {
    // Anything at all: up, down, noise of a factor.
    const int count = 2 + static_cast<int>(random.below(40));
    std::vector<Sample> samples;
    double cost = 1e-5;
    for (int i = 0; i < count; ++i) {
      cost *= std::exp(random.normal());
      samples.push_back({Bytes{1 + random.below(1U << 20U)}, Seconds{cost}, Seconds{0}, 1});
    }
    const Fit fit = fit_curve(samples, FitOptions{.bootstrap = 5});
    Seconds before{0};
    for (std::uint64_t m = 0; m < (1U << 21U); m += 997) {
      const Seconds now = fit.curve(Bytes{m});
      ASSERT_GE(now.count(), before.count() * (1 - 1e-9));
      before = now;
    }
    for (const CurvePiece& piece : fit.curve.pieces()) {
      EXPECT_GE(piece.alpha.count(), 0);
      EXPECT_GE(piece.beta.value, 0);
    }
    EXPECT_TRUE(std::isfinite(fit.quality.r_squared));
    EXPECT_TRUE(
        std::all_of(fit.covariance.begin(), fit.covariance.end(), [](double c) { return std::isfinite(c); }));
  }
}

TEST(FitCurve, ScalesWithTheUnitOfTime) {
  // Everything is relative, so a network ten thousand times as slow has the same fit in its own unit.
  const auto samples = samples_of(three(), 24, 0.01, 3);
  auto slow = samples;
  for (Sample& sample : slow) {
    sample.time *= 1e4;
  }
  const Fit a = fit_curve(samples, kNoBootstrap), b = fit_curve(slow, kNoBootstrap);
  for (const Bytes size : sizes(30)) {
    EXPECT_NEAR(b.curve(size) / a.curve(size) / 1e4, 1, 1e-6);
  }
}

TEST(FitCurve, TakesSamplesInAnyOrderAndRepeatedSizes) {
  auto samples = samples_of(jump(), 15, 0.01, 3);
  const auto more = samples_of(jump(), 15, 0.01, 4);
  samples.insert(samples.end(), more.begin(), more.end());
  const Fit sorted = fit_curve(samples);
  std::reverse(samples.begin(), samples.end());
  const Fit reversed = fit_curve(samples);
  ASSERT_EQ(sorted.curve.pieces().size(), 2U);
  EXPECT_EQ(sorted.curve(1_MiB), reversed.curve(1_MiB));
  EXPECT_EQ(sorted.covariance, reversed.covariance);
}

TEST(FitCurve, FitsTwoSamples) {
  // 1 us at 1 B and 3 us at 1001 B: 2 ns/B from 0.998 us.
  const Fit fit = fit_curve(
      std::vector<Sample>{{1_B, Seconds{1e-6}, Seconds{0}, 1}, {1001_B, Seconds{3e-6}, Seconds{0}, 1}});
  ASSERT_EQ(fit.curve.pieces().size(), 1U);
  EXPECT_NEAR(fit.curve.pieces()[0].beta.value, 2e-9, 1e-14);
  EXPECT_NEAR(fit.curve.pieces()[0].alpha.count(), 0.998e-6, 1e-11);
}

TEST(FitCurve, TrustsNarrowIntervalsMore) {
  auto samples = samples_of(line(), 12, 0, 1);
  for (std::size_t i = 0; i < samples.size(); i += 3) {  // a third is 5 % too long, and says that it may be
    samples[i].time *= 1.05;
    samples[i].half_width = samples[i].time * 0.1;
  }
  const Fit fit = fit_curve(samples, kNoBootstrap);
  EXPECT_NEAR(fit.curve(1_MiB) / line()(1_MiB), 1, 0.005);
}

TEST(FitCurve, SaysWhenItExplainsItsSamplesBadly) {
  Random random(9);
  std::vector<Sample> samples;
  for (const Bytes size : sizes(20)) {
    samples.push_back({size, Seconds{1e-3 * std::exp(1.5 * random.normal())}, Seconds{0}, 1});
  }
  const Fit fit = fit_curve(samples, kNoBootstrap);
  EXPECT_GT(fit.quality.median_relative, 0.3);
  EXPECT_GT(fit.quality.p90_relative, fit.quality.median_relative);
  EXPECT_LT(fit.quality.r_squared, 0.5);
}

TEST(FitCurve, IsDeterministic) {
  const auto samples = samples_of(jump(), 20, 0.02, 3);
  EXPECT_EQ(fit_curve(samples).covariance, fit_curve(samples).covariance);
  EXPECT_NE(fit_curve(samples).covariance, fit_curve(samples, FitOptions{.seed = 2}).covariance);
}

TEST(FitCurve, CovarianceCoversTheTruth) {
  // The standard error of alpha should be what alpha really deviates by: 200 samplings of one line.
  double squared = 0, claimed = 0;
  constexpr int kTrials = 200;
  for (std::uint64_t seed = 0; seed < kTrials; ++seed) {
    const Fit fit =
        fit_curve(samples_of(line(), 20, 0.02, seed), FitOptions{.max_pieces = 1, .bootstrap = 100});
    ASSERT_EQ(fit.covariance.size(), 4U);
    const double miss = fit.curve.pieces()[0].alpha.count() - 50e-6;
    squared += miss * miss / kTrials;
    claimed += fit.covariance[0] / kTrials;
  }
  EXPECT_NEAR(std::sqrt(claimed / squared), 1, 0.2);
}

TEST(FitCurve, CovarianceHeedsTheSamplesOwnIntervals) {
  // Two exact-looking samples known to 5 % only: the residuals say nothing, the intervals do.
  const std::vector<Sample> samples{{4_B, Seconds{1e-5}, Seconds{0.5e-6}, 9},
                                    {1_MiB, Seconds{1e-3}, Seconds{50e-6}, 9}};
  const Fit fit = fit_curve(samples);
  const double error = std::sqrt(fit.covariance[0]) / 1e-5;
  EXPECT_NEAR(error, 0.05 / 1.96, 0.01);
}

TEST(FitCurve, CovarianceCoversAMisfitThatSamplesDoNotExplain) {
  // Sizes that cost 20 % more or less than their neighbours, by turns, each known to 1 %: no line passes
  // through, and a hundred sizes do not make a prediction better than 20 %.
  for (const int count : {12, 100}) {
    auto samples = samples_of(line(), count, 0, 1);
    for (std::size_t i = 0; i < samples.size(); ++i) {
      samples[i].time *= i % 2 == 0 ? 1.2 : 0.8;
      samples[i].half_width = samples[i].time * 0.01;
      samples[i].repetitions = 20;
    }
    const Fit fit = fit_curve(samples, FitOptions{.max_pieces = 1});
    const double doubt = std::sqrt(fit.covariance[0]) / fit.curve.pieces()[0].alpha.count();
    EXPECT_GT(doubt, 0.12) << count << " samples";
    EXPECT_LT(doubt, 0.5) << count << " samples";
  }
}

TEST(FitCurve, RefusesWhatIsNoSample) {
  const auto fit = [](std::vector<Sample> samples) { return bad_input([&] { fit_curve(samples); }); };
  EXPECT_THAT(fit({}), HasSubstr("two distinct sizes"));
  EXPECT_THAT(fit({{4_B, Seconds{1}, {}, 1}, {4_B, Seconds{2}, {}, 1}}), HasSubstr("two distinct sizes"));
  EXPECT_THAT(fit({{4_B, Seconds{1}, {}, 1}, {8_B, Seconds{0}, {}, 1}}), HasSubstr("sample 1: time"));
  EXPECT_THAT(fit({{4_B, Seconds{0.0 / 0.0}, {}, 1}, {8_B, Seconds{1}, {}, 1}}), HasSubstr("sample 0: time"));
  EXPECT_THAT(fit({{4_B, Seconds{1}, Seconds{-1}, 1}, {8_B, Seconds{1}, {}, 1}}), HasSubstr("half width"));
  EXPECT_THAT(fit({{Bytes{UINT64_MAX}, Seconds{1}, {}, 1}, {8_B, Seconds{1}, {}, 1}}),
              HasSubstr("at most 2^53"));
}

TEST(FitOptions, CheckThemselves) {
  EXPECT_NO_THROW(FitOptions{}.check());
  EXPECT_THAT(bad_input([] { FitOptions{.max_pieces = 0}.check(); }), HasSubstr("max_pieces = 0"));
  EXPECT_THAT(bad_input([] { FitOptions{.huber = -1}.check(); }), HasSubstr("huber"));
  EXPECT_THAT(bad_input([] { FitOptions{.bootstrap = -1}.check(); }), HasSubstr("bootstrap = -1"));
}

TEST(DrawCurves, SpreadAsTheCovarianceSays) {
  Fit fit;
  fit.curve = line();
  // Standard deviations of 1 us and 0.1 ns/B, correlation -0.5.
  fit.covariance = {1e-12, -0.5e-16, -0.5e-16, 1e-20};
  const auto curves = draw_curves(fit, 4000, 1);
  ASSERT_EQ(curves.size(), 4000U);
  double alpha = 0, beta = 0, both = 0;
  for (const Curve& curve : curves) {
    const double a = (curve.pieces()[0].alpha.count() - 50e-6) / 1e-6;
    const double b = (curve.pieces()[0].beta.value - 8e-9) / 1e-10;
    alpha += a * a / 4000;
    beta += b * b / 4000;
    both += a * b / 4000;
  }
  EXPECT_NEAR(alpha, 1, 0.1);
  EXPECT_NEAR(beta, 1, 0.1);
  EXPECT_NEAR(both, -0.5, 0.1);
}

TEST(DrawCurves, AreCostsWhateverTheCovariance) {
  Fit fit;
  fit.curve = three();
  fit.covariance = std::vector<double>(36, 0);
  for (std::size_t i = 0; i < 6; ++i) {
    fit.covariance[7 * i] = i % 2 == 0 ? 1e-6 : 1e-16;  // far wider than the parameters themselves
  }
  for (const Curve& curve : draw_curves(fit, 500, 1)) {  // the constructor of Curve refuses what is no cost
    EXPECT_EQ(curve.pieces().size(), 3U);
  }
}

TEST(DrawCurves, AreTheFitsOwnWithoutACovariance) {
  Fit fit;
  fit.curve = jump();
  const auto curves = draw_curves(fit, 3, 1);
  ASSERT_EQ(curves.size(), 3U);
  EXPECT_EQ(curves[2](1_MiB), jump()(1_MiB));
  EXPECT_TRUE(draw_curves(fit, 0, 1).empty());
}

TEST(DrawCurves, AreTheSameForTheSameSeed) {
  const Fit fit = fit_curve(samples_of(jump(), 20, 0.02, 3));
  EXPECT_EQ(draw_curves(fit, 5, 7)[4](1_MiB), draw_curves(fit, 5, 7)[4](1_MiB));
  EXPECT_NE(draw_curves(fit, 5, 7)[4](1_MiB), draw_curves(fit, 5, 8)[4](1_MiB));
}

TEST(MedianInterval, OfFewValuesIsTheirRange) {
  std::vector<double> values{3, 1, 2};
  const MedianInterval interval = median_interval(values);
  EXPECT_EQ(interval.median, 2);
  EXPECT_EQ(interval.low, 1);
  EXPECT_EQ(interval.high, 3);
  EXPECT_DOUBLE_EQ(interval.relative_half_width(), 0.5);
  std::vector<double> even{4, 1, 2, 3};
  EXPECT_EQ(median_interval(even).median, 2.5);
  std::vector<double> none;
  bad_input([&] { median_interval(none); });
}

/// 1, 2, ..., n.
std::vector<double> ranks(int n) {
  std::vector<double> values;
  for (int i = 1; i <= n; ++i) {
    values.push_back(i);
  }
  return values;
}

TEST(MedianInterval, TakesTheOrderStatisticsOfTheTables) {
  // Ranks of the 95 % interval of a median in statistical tables (exact binomial): n = 6: 1 to 6, 10: 2 to 9,
  // 20: 6 to 15, 50: 18 to 33, 100: 40 to 61.
  const auto expect = [](int n, double low, double high) {
    auto values = ranks(n);
    const MedianInterval interval = median_interval(values);
    EXPECT_EQ(interval.low, low) << n;
    EXPECT_EQ(interval.high, high) << n;
  };
  expect(6, 1, 6);
  expect(10, 2, 9);
  expect(20, 6, 15);
  expect(50, 18, 33);
  expect(100, 40, 61);
}

TEST(MedianInterval, HasNoStepWhereItStopsCountingExactly) {
  auto exact = ranks(1000), approximate = ranks(1001);
  EXPECT_NEAR(median_interval(exact).low, median_interval(approximate).low, 2);
  EXPECT_NEAR(median_interval(exact).high, median_interval(approximate).high, 3);
}

TEST(MedianInterval, CoversTheTruth) {
  Random random(1);
  for (const std::size_t n : {7U, 15U, 40U}) {
    int covered = 0;
    constexpr int kTrials = 2000;
    for (int trial = 0; trial < kTrials; ++trial) {
      std::vector<double> values(n);
      std::generate(values.begin(), values.end(), [&] { return random.normal(); });
      const MedianInterval interval = median_interval(values);
      covered += interval.low <= 0 && 0 <= interval.high ? 1 : 0;
    }
    EXPECT_GE(covered, kTrials * 0.94) << n;
  }
}

}  // namespace
}  // namespace commtune
