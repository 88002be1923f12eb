#include "probes/size_times.h"

#include <algorithm>
#include <cmath>

#include "perfmodel/normal.h"

namespace commtune::probes {

namespace {

MedianInterval interval_of(std::vector<double> values) { return median_interval(values); }

/// Relative half width of the median's 95 % interval if the values are normal but for stalls, by their median
/// absolute deviation. Source: Rousseeuw and Croux, JASA 88 (1993), with the correction for few values of
/// Croux and Rousseeuw, Compstat (1992).
double normal_half_width(const std::vector<double>& values, double median) {
  constexpr double kFewValues = 1.2;
  std::vector<double> distances;
  distances.reserve(values.size());
  for (const double value : values) distances.push_back(std::abs(value - median));
  const double deviation = kSigmaByMedian * kFewValues * interval_of(distances).median;
  return kNormal95 * kMedianOverMean * deviation / std::sqrt(static_cast<double>(values.size())) / median;
}

/// Of so few values the interval that needs no distribution is their range, which a single stall makes wide.
double half_width(const std::vector<double>& values) {
  constexpr std::size_t kLeast = 5, kMost = 8;  // with fewer, their median distance says as little
  const MedianInterval interval = interval_of(values);
  const double wide = interval.relative_half_width();
  if (values.size() < kLeast || values.size() > kMost) return wide;
  return std::min(wide, normal_half_width(values, interval.median));
}

}  // namespace

SizeTimes::SizeTimes(std::vector<double> seconds, const Sample& sample)
    : seconds_(std::move(seconds)),
      median_(sample.time.count()),
      width_(sample.half_width / sample.time),
      earlier_(true) {
  if (seconds_.empty()) seconds_.assign(static_cast<std::size_t>(sample.repetitions), median_);
}

void SizeTimes::add(std::span<const double> seconds, Seconds left) {
  seconds_.insert(seconds_.end(), seconds.begin(), seconds.end());
  visits_.push_back(interval_of({seconds.begin(), seconds.end()}).median);
  left_ = left;
  median_ = interval_of(seconds_).median;
  between_ = visits_.size() < 2 ? 0 : interval_of(visits_).relative_half_width();
  width_ = std::max(half_width(seconds_), between_);
}

Sample SizeTimes::sample(Bytes size) const {
  return {size, Seconds{median_}, Seconds{width_ * median_}, repetitions()};
}

}  // namespace commtune::probes
