#pragma once
// Verified tuning: the plans that the doubt cannot tell apart are run in turn until the difference is
// certain, and the measurement chooses. MODEL.md section 7.1 has the test. As pure as the rest: what runs
// plans, and the clock, are the caller's.

#include <cstddef>
#include <functional>
#include <vector>

#include "perfmodel/base/units.h"
#include "perfmodel/plan.h"
#include "tuner/tuner.h"

namespace commtune::tuner {

/// Runs a plan for a few iterations; returns how long each took, all positive. An Error says that this plan
/// cannot be run, and ends nothing else, but for those of verify().
using Measure = std::function<std::vector<Seconds>(const Plan&)>;

/// What a user may say about it.
struct VerifyLimits {
  int plans = 3;         ///< most plans that are run
  Seconds budget{60.0};  ///< from when on nothing is begun any more
  void check() const;    ///< throws Error{kBadInput} naming field, value and rule
};

struct VerifyOptions {
  VerifyLimits limits;
  Measure measure;
  std::function<Seconds()> clock;  ///< time since some moment
};

/// The entries that verify() runs: the chosen one, then in the ranking's order those whose range overlaps its
/// own (all, where no doubt was computed). Of entries that are the same plan only the first.
std::vector<std::size_t> plans_to_verify(const Answer& answer, int most);

/// Runs plans_to_verify() in rounds, in which each that is still in question has one turn, in alternating
/// order: what drifts meanwhile, such as a host that warms up or another job's traffic, then changes all
/// alike. A plan leaves when it is certain to be slower than the fastest. Those that were run come before the
/// others of the ranking, the fastest first; chosen is the fastest, or the simplest of those that were within
/// kIndifferent of it. Fills in Entry::measured, Entry::failure, Answer::verified and Answer::reason.
///
/// At least one plan is run, whatever the budget; a round is not begun that would end after it, if it took
/// as long as the one before.
///
/// throws  Error{kBadInput} for options that break a rule; what `measure` throws where that is kInterrupted
///         or kStorage, or where no plan could be run: then the answer is as it was
void verify(Answer& answer, const VerifyOptions& options);

}  // namespace commtune::tuner
