#pragma once
// When a probe looks at what it has measured so far (the interim looks of a sequential trial), and when what
// it sees is enough.

#include <string>

#include "perfmodel/base/units.h"
#include "probes/sampling/advisor.h"
#include "probes/sampling/sampling_plan.h"

namespace commtune::probes {

class InterimLooks {
 public:
  explicit InterimLooks(Seconds budget) : budget_(budget) {}

  /// Whether to look before this visit: once when every road has its first sizes, then each time that another
  /// part of what was left then is spent, as long as looks that take as long as the longest so far stay
  /// within their share. With `left` of the budget.
  bool due(const Visit& next, Seconds left);
  /// How long the look took that was due.
  void add_time(Seconds took);

  /// How long a look should take, which all ranks wait for.
  Seconds limit() const;

  /// True where the choice has been certain, and the same, at kAlike looks in a row.
  bool is_settled_by(const Advice& advice);

  int looks() const { return looks_; }
  const std::string& choice() const { return choice_; }

  /// Of the budget, for all looks together at most, unless the first one alone takes longer.
  static constexpr double kShare = 0.04;
  static constexpr int kMost = 4;
  /// However large the budget is: well within what ranks wait for each other.
  static constexpr Seconds kLongest{1.0};
  static constexpr int kAlike = 3;

 private:
  Seconds budget_;
  Seconds first_left_{};         ///< at the first look
  Seconds spent_{}, longest_{};  ///< on looks; by one of them
  int looks_ = 0, alike_ = 0;
  std::string choice_;
};

}  // namespace commtune::probes
