#include "probes/analysis/formula_shape.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

namespace commtune::probes {
namespace {

// 100 us and 10 ns a byte, known from 1 KiB to 1 MiB.
const FormulaShape kLine{Curve{Seconds{100e-6}, SecondsPerByte{10e-9}}, Bytes{1 << 10}, Bytes{1 << 20}};

double line(double bytes) { return 100e-6 + 10e-9 * bytes; }

Sample sample(std::uint64_t bytes, double seconds) { return {Bytes{bytes}, Seconds{seconds}, Seconds{0}, 5}; }

const Sample* at(const std::vector<Sample>& samples, std::uint64_t bytes) {
  const auto found = std::find_if(samples.begin(), samples.end(),
                                  [&](const Sample& sample) { return sample.size == Bytes{bytes}; });
  return found == samples.end() ? nullptr : &*found;
}

// Of streamed messages: 8 ns a byte, and 400 ns to hand one over.
const Curve kBytes{Seconds{0}, SecondsPerByte{8e-9}};

std::vector<Sample> stream(const std::function<double(double)>& cost,
                           const std::vector<std::uint64_t>& sizes) {
  std::vector<Sample> by_size;
  by_size.reserve(sizes.size());
  for (const std::uint64_t bytes : sizes) by_size.push_back(sample(bytes, cost(static_cast<double>(bytes))));
  return by_size;
}

TEST(StreamShape, TakesTheLongerOfHandingOverAndBytesWhereSamplesShowIt) {
  const auto cost = [](double bytes) { return std::max(400e-9, 8e-9 * bytes); };
  const Curve shape = stream_shape(stream(cost, {4, 128, 65536}), kBytes, 1);
  for (const std::uint64_t bytes : {4, 16, 48, 256, 4096}) {
    const double seconds = cost(static_cast<double>(bytes));
    EXPECT_NEAR(shape(Bytes{bytes}).count(), seconds, 1e-3 * seconds) << bytes;
  }
}

TEST(StreamShape, AddsWhatBytesDoNotHide) {
  // Half of handing over is a header's bytes.
  const auto cost = [](double bytes) { return std::max(400e-9, 184e-9 + 8e-9 * bytes); };
  const Curve shape = stream_shape(stream(cost, {4, 32, 128, 65536}), kBytes, 0);
  for (const std::uint64_t bytes : {4, 16, 48, 256, 4096}) {
    const double seconds = cost(static_cast<double>(bytes));
    EXPECT_NEAR(shape(Bytes{bytes}).count(), seconds, 1e-3 * seconds) << bytes;
  }
}

TEST(StreamShape, IsAsAssumedWhereSamplesDoNotTell) {
  // The ends say nothing of what is between.
  const std::vector<Sample> ends = stream([](double bytes) { return 368e-9 + 8e-9 * bytes; }, {4, 1 << 20});
  EXPECT_NEAR(stream_shape(ends, kBytes, 1)(Bytes{64}).count(), 880e-9, 1e-12);
  EXPECT_NEAR(stream_shape(ends, kBytes, 0)(Bytes{64}).count(), 512e-9, 1e-12);
}

TEST(BorrowedSamples, AreTheFormulaTimesWhatWasMeasuredOfIt) {
  // Four fifths of the formula at 4 KiB and at 64 KiB: so it is between, and beyond up to what links show.
  const std::vector<Sample> measured{sample(4096, 0.8 * line(4096)), sample(65536, 0.8 * line(65536))};
  const std::vector<Sample> borrowed = borrowed_samples(measured, kLine);
  for (const std::uint64_t bytes : {1024, 2048, 8192, 16384, 32768, 131072, 1 << 20}) {
    ASSERT_NE(at(borrowed, bytes), nullptr) << bytes;
    EXPECT_NEAR(at(borrowed, bytes)->time.count(), 0.8 * line(static_cast<double>(bytes)), 1e-9) << bytes;
  }
  EXPECT_EQ(borrowed.size(), 19u);  // two an octave: seven between, four below, eight beyond
}

TEST(BorrowedSamples, InterpolateTheRatioInTheLogarithmOfTheSize) {
  // All of the formula at 4 KiB and a quarter at 64 KiB: half of it in the middle of both, 16 KiB.
  const std::vector<Sample> measured{sample(4096, line(4096)), sample(65536, 0.25 * line(65536))};
  const std::vector<Sample> borrowed = borrowed_samples(measured, kLine);
  const Sample* middle = at(borrowed, 16384);
  ASSERT_NE(middle, nullptr);
  EXPECT_NEAR(middle->time.count(), 0.5 * line(16384), 1e-9);
  // Doubt: a quarter of the change ln 4, but no more than a tenth, and 1 % for each of two octaves; seven
  // samples count as one.
  const double doubt = std::hypot(0.1, 0.02) * 1.959964 * std::sqrt(7.0);
  EXPECT_NEAR(middle->half_width / middle->time, doubt, 1e-6);
  EXPECT_EQ(middle->repetitions, 1);
}

TEST(BorrowedSamples, AddTheStartUpThatTheFormulaLacks) {
  // Streams cost a processor 500 us each, of which a formula over links knows nothing: no factor but a sum.
  const std::vector<Sample> measured{sample(4096, 500e-6 + line(4096)), sample(65536, 500e-6 + line(65536))};
  const std::vector<Sample> borrowed = borrowed_samples(measured, kLine);
  ASSERT_NE(at(borrowed, 16384), nullptr);
  EXPECT_NEAR(at(borrowed, 16384)->time.count(), 500e-6 + line(16384), 1e-9);
}

TEST(BorrowedSamples, GoOnAsIsSaidWithWhatTheLargestTakesLonger) {
  // 200 us more at 64 KiB, of which the formula says 755: 1 MiB takes 200 us more as well, or a quarter.
  const std::vector<Sample> measured{sample(4096, line(4096)), sample(65536, line(65536) + 200e-6)};
  const auto excess = [&](double grows) {
    FormulaShape shape = kLine;
    shape.excess_grows = grows;
    return at(borrowed_samples(measured, shape), 1 << 20)->time.count() - line(1 << 20);
  };
  const double more = line(1 << 20) / line(65536);
  EXPECT_NEAR(excess(0), 200e-6, 1e-9);
  EXPECT_NEAR(excess(0.5), 200e-6 * std::sqrt(more), 1e-9);
  EXPECT_NEAR(excess(1), 200e-6 * more, 1e-9);
}

TEST(BorrowedSamples, OfAStreamGoOnWithNoMoreThanBytesTakeAlone) {
  // At 64 KiB a stream takes twice the formula. Alone 1 MiB takes 4 ns a byte longer than 64 KiB.
  const std::vector<Sample> streamed{sample(4096, 2 * line(4096)), sample(65536, 2 * line(65536))};
  FormulaShape shape = kLine;
  shape.alone = Curve{Seconds{1e-3}, SecondsPerByte{4e-9}};
  const double added = 4e-9 * ((1 << 20) - 65536);
  EXPECT_NEAR(at(borrowed_samples(streamed, shape), 1 << 20)->time.count(), 2 * line(65536) + added, 1e-6);
  // A start-up that all sizes up to 1 MiB share takes nothing off what bytes take.
  shape.alone = Curve{
      {{Bytes{0}, Seconds{8e-3}, SecondsPerByte{0}}, {Bytes{1 << 21}, Seconds{0}, SecondsPerByte{4e-9}}}};
  EXPECT_NEAR(at(borrowed_samples(streamed, shape), 1 << 20)->time.count(), 2 * line(65536) + added, 1e-6);
}

TEST(BorrowedSamples, GoOnWithLessOfTheBytesWhereTheLargestTakesLess) {
  // Bytes take 6 ns where the formula says 10, and a message's start-up what it says.
  const auto cost = [](std::uint64_t bytes) { return 100e-6 + 6e-9 * static_cast<double>(bytes); };
  const std::vector<Sample> measured{sample(1024, cost(1024)), sample(65536, cost(65536))};
  const auto relative = [&](std::uint64_t bytes) {
    return at(borrowed_samples(measured, kLine), bytes)->time.count() / cost(bytes);
  };
  EXPECT_NEAR(relative(1 << 20), 1, 0.01);
  // Of two sizes that are mostly start-up nothing is told of bytes.
  const std::vector<Sample> small{sample(1024, cost(1024)), sample(4096, cost(4096))};
  EXPECT_NEAR(at(borrowed_samples(small, kLine), 1 << 20)->time.count(),
              line(1 << 20) * cost(4096) / line(4096), 1e-6);
}

TEST(BorrowedSamples, AreNoneOfAShapeThatCostsNothing) {
  const std::vector<Sample> measured{sample(4096, 1e-3), sample(65536, 2e-3)};
  const FormulaShape nothing{Curve{Seconds{0}, SecondsPerByte{0}}, Bytes{4}, Bytes{1 << 20}};
  EXPECT_TRUE(borrowed_samples({}, kLine).empty());
  EXPECT_TRUE(borrowed_samples(measured, nothing).empty());
  EXPECT_NEAR(fit_with_shape(measured, nothing, {}).curve(Bytes{65536}).count(), 2e-3, 1e-5);
}

TEST(BorrowedSamples, AreDoubtfulAsTheRatioChanges) {
  // All of the formula at 4 KiB and four fifths at 64 KiB: a quarter of the change ln 1.25.
  const std::vector<Sample> measured{sample(4096, line(4096)), sample(65536, 0.8 * line(65536))};
  const std::vector<Sample> borrowed = borrowed_samples(measured, kLine);
  const Sample* middle = at(borrowed, 16384);
  ASSERT_NE(middle, nullptr);
  const double doubt = std::hypot(0.25 * std::log(1.25), 0.02) * 1.959964 * std::sqrt(7.0);
  EXPECT_NEAR(middle->half_width / middle->time, doubt, 1e-6);
}

TEST(FitWithShape, DoesNotStepUpWhereTheFormulaIsFarOff) {
  // Six servers behind a trunk of which the formula knows nothing, as measured: 128 KiB take four times as
  // long. Another run measured 4.56 ms for 48 KiB.
  const FormulaShape fast{Curve{Seconds{0.43e-3}, SecondsPerByte{14e-9}}, Bytes{32}, Bytes{1 << 22}};
  const std::vector<Sample> measured{{Bytes{32}, Seconds{1.0811e-3}, Seconds{104e-6}, 7},
                                     {Bytes{8192}, Seconds{1.0818e-3}, Seconds{15e-6}, 6},
                                     {Bytes{131072}, Seconds{11.6233e-3}, Seconds{2e-6}, 5}};
  EXPECT_NEAR(fit_with_shape(measured, fast, {}).curve(Bytes{49152}).count(), 4.56e-3, 0.15 * 4.56e-3);
}

TEST(FitWithShape, BendsWhereTheFormulaDoes) {
  // Links bend at 64 KiB, from 1 ns a byte to 20; the operation takes 1.1 times as long and was measured at
  // three sizes, too few for a fit of two pieces.
  const FormulaShape bent{Curve{{{Bytes{0}, Seconds{1e-3}, SecondsPerByte{1e-9}},
                                 {Bytes{65536}, Seconds{1e-3}, SecondsPerByte{20e-9}}}},
                          Bytes{64}, Bytes{1 << 22}};
  const auto truth = [&](std::uint64_t bytes) { return 1.1 * bent.curve(Bytes{bytes}).count(); };
  std::vector<Sample> measured;
  for (const std::uint64_t bytes : {64, 8192, 1 << 20}) {
    measured.push_back(sample(bytes, truth(bytes)));
    measured.back().half_width = measured.back().time * 0.01;
  }
  const Fit with = fit_with_shape(measured, bent, {}), without = fit_curve(measured);
  for (const std::uint64_t bytes : {1024, 32768, 131072, 524288}) {
    EXPECT_NEAR(with.curve(Bytes{bytes}).count() / truth(bytes), 1, 0.05) << bytes;
  }
  EXPECT_GT(std::abs(without.curve(Bytes{32768}).count() / truth(32768) - 1), 0.3);
  // What was borrowed is no evidence.
  EXPECT_EQ(with.quality.samples, 3);
  EXPECT_EQ(with.smallest, Bytes{64});
  EXPECT_EQ(with.largest, Bytes{1 << 20});
}

}  // namespace
}  // namespace commtune::probes
