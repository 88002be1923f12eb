#include "perfmodel/fit/sample_spread.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "perfmodel/base/normal.h"

namespace commtune {

namespace {

/// What the pooled variance of neighbours counts, in degrees of freedom.
constexpr double kNeighboursCount = 4;
/// Sizes are alike up to about this ratio: scatter changes slowly with the size.
constexpr double kAlikeOctaves = 3;
/// Of the relative scatter of shorter samples, that of longer ones is at least this share.
constexpr double kLeastShare = 0.2;

/// Half the expected range of n standard normal values: what median_interval() gives as half width of few.
/// Source: the control chart constant d2 (Tippett, 1925), halved.
double half_width_of_normal(int n) {
  constexpr std::array<double, 6> kHalfRange{0, 0, 0.564, 0.846, 1.029, 1.163};
  const auto index = static_cast<std::size_t>(n);
  return index < kHalfRange.size() ? kHalfRange[index]
                                   : kNormal95 * kMedianOverMean / std::sqrt(static_cast<double>(n));
}

double standard_error_of_median(int n) {
  return (n < 3 ? 1 : kMedianOverMean) / std::sqrt(static_cast<double>(std::max(n, 1)));
}

/// A sample by what its own repetitions say.
struct Own {
  double log_size = 0;
  double seconds = 0;
  int repetitions = 1;
  std::optional<double> deviation;  ///< of one repetition, relative

  double freedom() const { return deviation ? repetitions - 1 : 0; }
};

Own own_of(const Sample& sample) {
  Own own{std::log2(static_cast<double>(std::max<std::uint64_t>(sample.size.count, 1))),
          sample.time.count(),
          std::max(sample.repetitions, 1),
          {}};
  if (own.repetitions >= 2 && sample.half_width > Seconds{0}) {
    own.deviation = sample.half_width / sample.time / half_width_of_normal(own.repetitions);
  }
  return own;
}

/// Of the relative deviation of a sample that takes `seconds`, what remains in a longer one: there the delays
/// that make it up even out.
double remaining(double seconds, double in_longer) {
  return std::clamp(std::sqrt(seconds / in_longer), kLeastShare, 1.0);
}

/// Median of the deviations of all samples but one, weighted by likeness of size and by their degrees of
/// freedom: a stall in one of them does not spread.
double deviation_of_neighbours(const std::vector<Own>& all, std::size_t but) {
  std::vector<std::pair<double, double>> weighted;  // deviation, weight
  double total = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i == but || !all[i].deviation) continue;
    const double distance = (all[i].log_size - all[but].log_size) / kAlikeOctaves;
    // Never nothing: far away is better than nowhere.
    const double weight = (std::exp(-distance * distance / 2) + 1e-9) * all[i].freedom();
    weighted.emplace_back(*all[i].deviation * remaining(all[i].seconds, all[but].seconds), weight);
    total += weight;
  }
  std::sort(weighted.begin(), weighted.end());
  double below = 0;
  for (const auto& [deviation, weight] : weighted) {
    below += weight;
    if (below >= total / 2) return deviation;
  }
  return 0;
}

}  // namespace

std::vector<double> relative_standard_errors(std::span<const Sample> samples) {
  std::vector<Own> all;
  for (const Sample& sample : samples) all.push_back(own_of(sample));
  const auto known = std::count_if(all.begin(), all.end(), [](const Own& own) { return own.deviation; });
  std::vector<double> errors;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Own& own = all[i];
    const double stated = samples[i].half_width / samples[i].time / kNormal95;
    if (known == 0 || (known == 1 && own.deviation)) {
      errors.push_back(stated);
      continue;
    }
    const double pooled = deviation_of_neighbours(all, i);
    const double square = own.deviation.value_or(0) * own.deviation.value_or(0) * own.freedom();
    const double variance =
        (square + kNeighboursCount * pooled * pooled) / (own.freedom() + kNeighboursCount);
    const double error = std::sqrt(variance) * standard_error_of_median(own.repetitions);
    errors.push_back(own.repetitions == 1 ? std::max(error, stated) : error);
  }
  return errors;
}

}  // namespace commtune
