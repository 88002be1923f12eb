#include "probes/size_times.h"

#include <algorithm>

namespace commtune::probes {

namespace {

MedianInterval interval_of(std::vector<double> values) { return median_interval(values); }

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
  const MedianInterval all = interval_of(seconds_);
  median_ = all.median;
  between_ = visits_.size() < 2 ? 0 : interval_of(visits_).relative_half_width();
  width_ = std::max(all.relative_half_width(), between_);
}

Sample SizeTimes::sample(Bytes size) const {
  return {size, Seconds{median_}, Seconds{width_ * median_}, repetitions()};
}

}  // namespace commtune::probes
