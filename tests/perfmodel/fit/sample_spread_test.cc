#include "perfmodel/fit/sample_spread.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

namespace commtune {
namespace {

// The half width of two normal values is 0.564 of their deviation; of many, 1.96 * 1.2533 / sqrt(n).
constexpr double kOfTwo = 0.564;

Sample sample(std::uint64_t bytes, double relative_half_width, int repetitions) {
  return {Bytes{bytes}, Seconds{1e-3}, Seconds{relative_half_width * 1e-3}, repetitions};
}

double half_width_of(double deviation, int repetitions) {
  return deviation * 1.959964 * 1.2533 / std::sqrt(repetitions);
}

TEST(RelativeStandardErrors, OfASingleRepetitionIsWhatOthersScatterBy) {
  std::vector<Sample> samples{sample(1 << 16, 0, 1)};
  for (const int octave : {12, 14, 18, 20}) {
    samples.push_back(sample(std::uint64_t{1} << octave, half_width_of(0.05, 25), 25));
  }
  const std::vector<double> errors = relative_standard_errors(samples);
  EXPECT_NEAR(errors[0], 0.05, 1e-4);                     // one repetition: the deviation itself
  EXPECT_NEAR(errors[1], 0.05 * 1.2533 / 5, 1e-4);        // a median of 25
  EXPECT_NEAR(errors[1] * 1.96, 0.05 * 2.457 / 5, 1e-3);  // which is its own interval
}

TEST(RelativeStandardErrors, DoNotTakeTwoThatAgreeForExact) {
  std::vector<Sample> samples{sample(1 << 16, 1e-6, 2)};
  for (const int octave : {14, 15, 17, 18}) {
    samples.push_back(sample(std::uint64_t{1} << octave, half_width_of(0.05, 25), 25));
  }
  // One degree of freedom of its own that saw nothing, four of the others: sqrt(4 / 5) of their deviation,
  // over sqrt(2) for the mean of two.
  EXPECT_NEAR(relative_standard_errors(samples)[0], 0.05 * std::sqrt(4.0 / 5) / std::sqrt(2.0), 1e-4);
}

TEST(RelativeStandardErrors, HeedSizesThatAreAlike) {
  // Small messages scatter by 20 %, large ones by 1 %.
  std::vector<Sample> samples;
  for (const int octave : {2, 4, 6}) samples.push_back(sample(std::uint64_t{1} << octave, 0.2 * kOfTwo, 2));
  for (const int octave : {20, 22, 26})
    samples.push_back(sample(std::uint64_t{1} << octave, 0.01 * kOfTwo, 2));
  samples.push_back(sample(8, 0, 1));
  samples.push_back(sample(1 << 24, 0, 1));
  const std::vector<double> errors = relative_standard_errors(samples);
  EXPECT_NEAR(errors[6], 0.2, 0.01);
  EXPECT_NEAR(errors[7], 0.01, 0.001);
}

TEST(RelativeStandardErrors, FallWithTheRootOfTheDuration) {
  std::vector<Sample> samples;
  for (const int octave : {14, 15, 17, 18}) {
    samples.push_back(sample(std::uint64_t{1} << octave, half_width_of(0.1, 25), 25));
  }
  const auto single = [](double seconds) { return Sample{Bytes{1 << 20}, Seconds{seconds}, Seconds{0}, 1}; };
  // Of the 10 % that those of 1 ms scatter by: a half after four times as long, a fifth after 25 times as
  // long and more, and no more than all of it for one that is shorter.
  for (const auto& [seconds, error] : std::vector<std::pair<double, double>>{
           {1e-3, 0.1}, {4e-3, 0.05}, {25e-3, 0.02}, {1.0, 0.02}, {0.25e-3, 0.1}}) {
    samples.push_back(single(seconds));
    EXPECT_NEAR(relative_standard_errors(samples).back(), error, 1e-4) << seconds;
    samples.pop_back();
  }
}

TEST(RelativeStandardErrors, DoNotSpreadAStall) {
  std::vector<Sample> samples{sample(1 << 16, 0, 1), sample(1 << 17, 3, 5)};
  for (const int octave : {14, 15, 18, 19}) samples.push_back(sample(std::uint64_t{1} << octave, 0.01, 5));
  const std::vector<double> errors = relative_standard_errors(samples);
  EXPECT_LT(errors[0], 0.02);
  EXPECT_GT(errors[1], 0.5);
}

TEST(RelativeStandardErrors, AreTheIntervalsWhereNothingElseIsKnown) {
  const std::vector<Sample> unknown{sample(4, 0, 1), sample(8, 0, 1)};
  EXPECT_EQ(relative_standard_errors(unknown), (std::vector<double>{0, 0}));
  const std::vector<Sample> stated{sample(4, 0.0196, 1), sample(8, 0, 1)};
  EXPECT_NEAR(relative_standard_errors(stated)[0], 0.01, 1e-5);
  EXPECT_TRUE(relative_standard_errors({}).empty());
}

}  // namespace
}  // namespace commtune
