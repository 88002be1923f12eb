#include "probes/sampling/interim_looks.h"

#include <algorithm>

namespace commtune::probes {

bool InterimLooks::due(const Visit& next, Seconds left) {
  if (next.of_first_sizes || looks_ == kMost) return false;
  if (looks_ == 0) first_left_ = left;
  // After another part of what was left at the first look; the last part ends with the probe.
  if ((first_left_ - left) * kMost < looks_ * first_left_) return false;
  if (spent_ + longest_ > kShare * budget_) return false;
  ++looks_;
  return true;
}

void InterimLooks::add_time(Seconds took) {
  spent_ += took;
  longest_ = std::max(longest_, took);
}

Seconds InterimLooks::limit() const { return std::min(kShare / kMost * budget_, kLongest); }

bool InterimLooks::is_settled_by(const Advice& advice) {
  const bool same = alike_ == 0 || advice.choice == choice_;
  alike_ = !advice.certain ? 0 : same ? alike_ + 1 : 1;
  if (!advice.choice.empty()) choice_ = advice.choice;
  return alike_ >= kAlike;
}

}  // namespace commtune::probes
