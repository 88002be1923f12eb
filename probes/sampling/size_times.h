#pragma once
// The measured times of one message size, and their error. Pure.

#include <span>
#include <vector>

#include "perfmodel/base/units.h"
#include "perfmodel/fit/fit.h"

namespace commtune::probes {

/// The times of one size, in visits. A visit is a row of repetitions that follow each other directly.
///
/// Repetitions within one visit are correlated: threads stay on their cores, other work on the host goes on,
/// the congestion window stays as it is. So they agree with each other better than with those of another
/// visit, seconds later, and the confidence interval of their median is too narrow. The spread between the
/// medians of visits is the honest error.
class SizeTimes {
 public:
  SizeTimes() = default;
  /// What an earlier session measured. The sample's interval is taken as it is, because that session knew its
  /// visits.
  /// seconds  by repetition; empty if only the sample was stored
  SizeTimes(std::vector<double> seconds, const Sample& sample);

  /// Adds one visit.
  /// seconds  by repetition, at least one
  /// left     seconds of the budget that were left when the visit was chosen
  void add(std::span<const double> seconds, Seconds left);

  const std::vector<double>& seconds() const { return seconds_; }  ///< in the order measured
  int repetitions() const { return static_cast<int>(seconds_.size()); }
  double median() const { return median_; }
  /// Half width of the median's 95 % interval, relative to the median: from all repetitions or from the
  /// medians of visits, whichever is wider.
  double width() const { return width_; }
  /// The half width from the medians of visits alone; 0 if there are fewer than two.
  double between_visits() const { return between_; }
  /// True after a single visit, when the spread between visits is unknown.
  bool visited_once() const { return visits_.size() == 1 && !earlier_; }
  int visits() const { return static_cast<int>(visits_.size()); }  ///< in this session
  Seconds left() const { return left_; }  ///< budget that was left when the last visit was chosen
  Sample sample(Bytes size) const;

 private:
  std::vector<double> seconds_;
  std::vector<double> visits_;  ///< the median of each, in seconds
  double median_ = 0, width_ = 0, between_ = 0;
  Seconds left_{};
  bool earlier_ = false;
};

}  // namespace commtune::probes
