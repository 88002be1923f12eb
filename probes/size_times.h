#pragma once
// How long one size took, and how far that is to be trusted. Pure.

#include <span>
#include <vector>

#include "perfmodel/fit.h"
#include "perfmodel/units.h"

namespace commtune::probes {

/// The times of one size, by visit: repetitions that followed each other.
///
/// A host is in the same mood for a while (where its threads run, what else it does, how far a connection's
/// window is open), so repetitions of one visit agree with each other more than with those of the next visit,
/// seconds later. Their median's own interval then says too little of its error: visits tell the rest.
class SizeTimes {
 public:
  SizeTimes() = default;
  /// As an earlier session measured it, which knew its visits.
  SizeTimes(std::vector<double> seconds, const Sample& sample);

  /// One visit's repetitions, at least one; `left` of the budget when it was chosen.
  void add(std::span<const double> seconds, Seconds left);

  const std::vector<double>& seconds() const { return seconds_; }  ///< in the order measured
  int repetitions() const { return static_cast<int>(seconds_.size()); }
  double median() const { return median_; }
  /// Relative half width of the median's 95 % interval: by all repetitions or by the visits' medians,
  /// whichever is wider.
  double width() const { return width_; }
  /// The part of the visits; 0 when there are fewer than two.
  double between_visits() const { return between_; }
  /// Visited once only, so that nobody knows what the next visit would say.
  bool visited_once() const { return visits_.size() == 1 && !earlier_; }
  int visits() const { return static_cast<int>(visits_.size()); }  ///< in this session
  Seconds left() const { return left_; }                           ///< of the budget at the last visit
  Sample sample(Bytes size) const;

 private:
  std::vector<double> seconds_;
  std::vector<double> visits_;  ///< their medians
  double median_ = 0, width_ = 0, between_ = 0;
  Seconds left_{};
  bool earlier_ = false;
};

}  // namespace commtune::probes
