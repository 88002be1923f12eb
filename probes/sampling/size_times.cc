#include "probes/sampling/size_times.h"

#include <algorithm>
#include <cmath>

#include "perfmodel/base/normal.h"

namespace commtune::probes {

namespace {

MedianInterval interval_of(std::vector<double> values) { return median_interval(values); }

/// Half width of the median's 95 % interval, relative to the median, for values that are normal apart from
/// stalls. The deviation is estimated by the median absolute deviation, which stalls hardly change. Source:
/// Rousseeuw and Croux, JASA 88 (1993), with the correction for few values of Croux and Rousseeuw, Compstat
/// (1992).
double normal_half_width(const std::vector<double>& values, double median) {
  constexpr double kFewValues = 1.2;  // ratio: their factor is 1.21 for 5 values, 1.13 for 8
  std::vector<double> distances;
  distances.reserve(values.size());
  for (const double value : values) distances.push_back(std::abs(value - median));
  const double deviation = kSigmaByMedian * kFewValues * interval_of(distances).median;
  return kNormal95 * kMedianOverMean * deviation / std::sqrt(static_cast<double>(values.size())) / median;
}

/// Half width of the median's 95 % interval, relative to the median. For 5 to 8 values the interval that
/// assumes no distribution is nearly their whole range, which a single stall makes wide, so the narrower of
/// that and of normal_half_width() is taken. Fewer than 5 values say as little about their deviation.
double half_width(const std::vector<double>& values) {
  constexpr std::size_t kLeast = 5, kMost = 8;
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
