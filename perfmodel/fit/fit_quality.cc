#include "perfmodel/fit/fit_quality.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace commtune {
namespace {

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  const double position = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (position - static_cast<double>(below)) * (values[above] - values[below]);
}

}  // namespace

FitQuality fit_quality(std::span<const double> measured, std::span<const double> predicted,
                       std::span<const double> units) {
  double weights = 0, weighted_time = 0;
  for (std::size_t i = 0; i < measured.size(); ++i) {
    weights += 1 / (units[i] * units[i]);
    weighted_time += measured[i] / (units[i] * units[i]);
  }
  const double mean = weighted_time / weights;
  double unexplained = 0, total = 0;
  std::vector<double> relative;
  for (std::size_t i = 0; i < measured.size(); ++i) {
    const double miss = measured[i] - predicted[i];
    unexplained += miss * miss / (units[i] * units[i]);
    total += (measured[i] - mean) * (measured[i] - mean) / (units[i] * units[i]);
    relative.push_back(std::abs(miss) / measured[i]);
  }
  FitQuality quality;
  quality.samples = static_cast<int>(measured.size());
  quality.r_squared = total > 0 ? 1 - unexplained / total : unexplained > 0 ? 0 : 1;
  quality.median_relative = quantile(relative, 0.5);
  quality.p90_relative = quantile(std::move(relative), 0.9);
  return quality;
}

}  // namespace commtune
