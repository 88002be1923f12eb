#include "perfmodel/cost/doubtful_fits.h"

#include <algorithm>
#include <functional>
#include <iomanip>
#include <sstream>

namespace commtune {

namespace {

// Ratios. Stricter ones would name fits that plans can well rest on, and nobody would read the list; looser
// ones would let a fit pass that misses a tenth of its samples by a third.
constexpr double kMostMedian = 0.10, kMostP90 = 0.30, kLeastExplained = 0.9;

bool misses_samples(const FitQuality& quality) {
  return quality.median_relative > kMostMedian || quality.p90_relative > kMostP90;
}

}  // namespace

bool is_doubtful(const Fit& fit) {
  const bool unexplained = fit.quality.samples > 1 && fit.quality.r_squared < kLeastExplained;
  return !fit.curve.empty() && (misses_samples(fit.quality) || unexplained);
}

bool is_usable(const Fit& fit) {
  return !fit.curve.empty() && !(misses_samples(fit.quality) && fit.quality.r_squared <= 0);
}

std::string to_string(const FitQuality& quality) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(1) << "median residual " << 100 * quality.median_relative
       << " %, p90 " << 100 * quality.p90_relative << " %, R² " << std::setprecision(3) << quality.r_squared;
  return text.str();
}

std::vector<FitSource> doubtful_among(std::vector<FitSource> fits) {
  std::erase_if(fits, [](const FitSource& source) { return !is_doubtful(*source.fit); });
  std::ranges::stable_sort(fits, std::greater<>{},
                           [](const FitSource& source) { return source.fit->quality.p90_relative; });
  return fits;
}

std::vector<std::string> doubtful_fits(const Cluster& cluster) {
  std::vector<std::string> lines;
  for (const FitSource& source : doubtful_among(fits_of(cluster)))
    lines.push_back(describe(source) + ": " + to_string(source.fit->quality));
  return lines;
}

}  // namespace commtune
