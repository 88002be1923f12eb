#include "probes/analysis/fit_operations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "perfmodel/cost/road_formula.h"

namespace commtune::probes {
namespace {

constexpr double kLatency = 2e-4, kHandingOver = 1e-5, kByte = 8e-9;

Fit line_fit(double alpha, double beta) {
  Fit fit;
  fit.curve = Curve{Seconds{alpha}, SecondsPerByte{beta}};
  fit.smallest = 4_B;
  fit.largest = 64_MiB;
  fit.quality.samples = 8;
  return fit;
}

/// Four hosts, whose links alone are fitted.
Cluster links_of_four() {
  Cluster cluster;
  cluster.name = "lab";
  for (int i = 0; i < 4; ++i) cluster.hosts.push_back({"h" + std::to_string(i), 1});
  cluster.links[LinkClass::kInterHost] = {line_fit(kLatency, kByte), line_fit(kHandingOver, kByte), {}};
  cluster.reduce_seconds_per_byte.value = 1e-11;
  return cluster;
}

Sample sample(Bytes size, double seconds) { return {size, Seconds{seconds}, Seconds{seconds / 100}, 5}; }

OperationSamples of(Collective algorithm) {
  OperationSamples samples;
  samples.quantity.subject = Subject::kOperation;
  samples.quantity.road = AllReduce{algorithm};
  samples.quantity.workers = 4;
  return samples;
}

/// Rings whose messages take a hundred microseconds to hand over, ten times as much as the links' formula
/// has.
OperationSamples measured_ring() {
  OperationSamples ring = of(Collective::kRing);
  for (const Bytes size : {1_KiB, 16_KiB, 256_KiB, 4_MiB}) {
    const auto bytes = static_cast<double>(size.count);
    ring.alone.push_back(sample(size, 6 * kLatency + 1.5 * kByte * bytes));
    ring.streamed.push_back(sample(size, std::max(6e-4, 1.5 * kByte * bytes)));
  }
  return ring;
}

/// One-shot, of which one size alone was streamed, and that took less than its bytes do.
OperationSamples one_shot_of_one_size() {
  OperationSamples one_shot = of(Collective::kOneShot);
  for (const Bytes size : {1_KiB, 16_KiB, 256_KiB})
    one_shot.alone.push_back(sample(size, kLatency + 3 * kByte * static_cast<double>(size.count)));
  one_shot.streamed.push_back(sample(256_KiB, 3 * kByte * 262144));
  return one_shot;
}

const OperationFit& fit_on(const FittedOperations& fitted, Collective algorithm) {
  return *std::ranges::find(fitted.fits, Road{AllReduce{algorithm}}, &OperationFit::road);
}

TEST(FitOperations, AStreamOfOneSizeTakesItsStartUpFromRoadsThatWereMeasured) {
  const std::vector<OperationSamples> samples{measured_ring(), one_shot_of_one_size()};
  const Cluster links = links_of_four();
  const FittedOperations fitted = fit_operations(samples, links, {});
  const FittedOperations by_itself = fit_operations(std::vector{one_shot_of_one_size()}, links, {});
  const Fit& alone = fit_on(by_itself, Collective::kOneShot).streamed;
  const Fit& carried = fit_on(fitted, Collective::kOneShot).streamed;
  ASSERT_FALSE(alone.curve.empty());
  ASSERT_FALSE(carried.curve.empty());
  // The links' formula hardly charges for a small message of a stream; rings show that it costs ten times
  // that.
  EXPECT_GT(carried.curve(64_B), 3 * alone.curve(64_B));
  EXPECT_NEAR(carried.curve(256_KiB).count(), 3 * kByte * 262144, 0.1 * 3 * kByte * 262144);
}

TEST(FitOperations, WhatTakesLongerThanItsFormulaGoesOnAsItsLargestSizesTell) {
  const Cluster links = links_of_four();
  const Curve formula = formula_of(AllReduce{Collective::kRing}, links, 4).both.alone;
  const auto at_4_mib = [&](const auto& longer) {
    OperationSamples ring = of(Collective::kRing);
    ring.alone.push_back(sample(64_B, formula(64_B).count()));
    for (const Bytes size : {32_KiB, 512_KiB})
      ring.alone.push_back(sample(size, longer(formula(size).count())));
    return fit_on(fit_operations(std::vector{ring}, links, {}), Collective::kRing).alone.curve(4_MiB).count();
  };
  const double seconds = formula(4_MiB).count();
  EXPECT_NEAR(at_4_mib([](double time) { return time + 1e-3; }), seconds + 1e-3, 0.02 * seconds);
  EXPECT_NEAR(at_4_mib([](double time) { return 1.4 * time; }), 1.4 * seconds, 0.02 * seconds);
}

TEST(FitOperations, EachOperationGoesOnAsItsOwnLargestSizesTell) {
  // One takes 0.2 ms longer than its formula, the other six tenths.
  const Cluster links = links_of_four();
  const auto samples_of = [&](Collective algorithm, const auto& longer) {
    const Curve formula = formula_of(AllReduce{algorithm}, links, 4).both.alone;
    OperationSamples samples = of(algorithm);
    samples.alone.push_back(sample(64_B, formula(64_B).count()));
    for (const Bytes size : {32_KiB, 512_KiB})
      samples.alone.push_back(sample(size, longer(formula(size).count())));
    return samples;
  };
  const auto later = [](double time) { return time + 0.2e-3; };
  const auto slower = [](double time) { return 1.6 * time; };
  const FittedOperations fitted = fit_operations(
      std::vector{samples_of(Collective::kRing, later), samples_of(Collective::kHalvingDoubling, slower)},
      links, {});
  const auto excess = [&](Collective algorithm) {
    const double formula = formula_of(AllReduce{algorithm}, links, 4).both.alone(4_MiB).count();
    return fit_on(fitted, algorithm).alone.curve(4_MiB).count() / formula - 1;
  };
  EXPECT_LT(excess(Collective::kRing), 0.02);
  EXPECT_NEAR(excess(Collective::kHalvingDoubling), 0.6, 0.03);
}

TEST(FitOperations, AStreamOfOneSizeIsInDoubtAsFormulasAre) {
  const std::vector<OperationSamples> samples{measured_ring(), one_shot_of_one_size()};
  const FittedOperations fitted = fit_operations(samples, links_of_four(), {});
  EXPECT_GT(fitted.formula_deviation.startup, 0);
  const Deviation carried = fit_on(fitted, Collective::kOneShot).streamed.deviation;
  EXPECT_EQ(carried.startup, fitted.formula_deviation.startup);
  EXPECT_LT(carried.rate, carried.startup);  // 256 KiB are hardly anything but bytes
  EXPECT_LT(fit_on(fitted, Collective::kRing).streamed.deviation.startup, carried.startup);
}

TEST(FitOperations, SizesThatDoNotSpanADecadeMakeNoCurve) {
  OperationSamples narrow = measured_ring();
  narrow.quantity.workers = 2;
  // By themselves they say that a message costs a millisecond whatever its size.
  narrow.streamed = {sample(64_KiB, 1e-3), sample(96_KiB, 1e-3), sample(128_KiB, 1e-3)};
  const FittedOperations fitted = fit_operations(std::vector{measured_ring(), narrow}, links_of_four(), {});
  const auto two = std::ranges::find(fitted.fits, 2, &OperationFit::workers);
  ASSERT_NE(two, fitted.fits.end());
  EXPECT_GT(two->streamed.curve(1_MiB) / two->streamed.curve(96_KiB), 4);
}

TEST(FitOperations, MessagesAloneOfTooFewSizesMakeNoCurveEither) {
  OperationSamples narrow = measured_ring();
  narrow.quantity.workers = 2;
  // By themselves they say that a message costs a millisecond whatever its size.
  narrow.alone = {sample(64_KiB, 1e-3), sample(128_KiB, 1e-3)};
  const FittedOperations fitted = fit_operations(std::vector{measured_ring(), narrow}, links_of_four(), {});
  const auto two = std::ranges::find(fitted.fits, 2, &OperationFit::workers);
  ASSERT_NE(two, fitted.fits.end());
  EXPECT_GT(two->alone.curve(16_MiB) / two->alone.curve(96_KiB), 50);
  EXPECT_EQ(two->alone.smallest, 64_KiB);
  EXPECT_EQ(two->alone.largest, 128_KiB);
}

TEST(FitOperations, TwoStreamedSizesAreCarriedByTheLinksWhereNoOtherStreamTells) {
  OperationSamples ring = measured_ring();
  ring.streamed = {sample(256_KiB, 4e-3), sample(512_KiB, 4e-3)};
  const FittedOperations fitted = fit_operations(std::vector{ring}, links_of_four(), {});
  const Fit& streamed = fit_on(fitted, Collective::kRing).streamed;
  EXPECT_GT(streamed.curve(16_MiB) / streamed.curve(512_KiB), 20);
  EXPECT_LT(streamed.curve(16_KiB) / streamed.curve(256_KiB), 0.5);
}

TEST(FitOperations, WithoutLinksTwoSizesMakeALine) {
  OperationSamples ring = measured_ring();
  ring.alone.resize(2);
  ring.streamed.resize(2);
  const FittedOperations fitted = fit_operations(std::vector{ring}, Cluster{}, {});
  ASSERT_EQ(fitted.fits.size(), 1U);
  EXPECT_FALSE(fitted.fits.front().alone.curve.empty());
  EXPECT_FALSE(fitted.fits.front().streamed.curve.empty());
}

TEST(FitOperations, DoubtsACurveThatItsOwnSizesDoNotPredict) {
  const Cluster links = links_of_four();
  const Formula formula = formula_of(AllReduce{}, links, 4);
  OperationSamples even = of(Collective::kRing);
  for (const Bytes size : {1_KiB, 16_KiB, 256_KiB, 4_MiB})
    even.alone.push_back(sample(size, 1.2 * formula.both.alone(size).count()));
  OperationSamples rough = even;
  rough.alone[1].time = rough.alone[1].time * 1.4;
  const auto deviation = [&](const OperationSamples& ring) {
    return fit_on(fit_operations(std::vector{ring}, links, {}), Collective::kRing).alone.deviation.rate;
  };
  EXPECT_GT(deviation(rough), deviation(even) + 0.015);
}

TEST(FitOperations, WithoutARoadToHoldOutFormulasAreDoubtedAllTheSame) {
  EXPECT_GT(fit_operations(std::vector{one_shot_of_one_size()}, Cluster{}, {}).formula_deviation.rate, 0.1);
}

}  // namespace
}  // namespace commtune::probes
