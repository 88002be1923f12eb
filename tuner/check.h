#pragma once
// The leading plans' own traffic is measured before an answer is given: short runs of them tell by how much
// their roads' costs are off for such traffic, and the plan is made again with costs that are not. MODEL.md
// section 7.2. As pure as the rest: what runs plans, and the clock, are the caller's.

#include <functional>
#include <string>
#include <vector>

#include "perfmodel/base/units.h"
#include "perfmodel/cluster.h"
#include "perfmodel/plan.h"
#include "perfmodel/profile.h"
#include "tuner/tuner.h"

namespace commtune::tuner {

struct CheckOptions {
  Seconds budget{5.0};  ///< from when on no plan is begun any more but the first
  /// Runs an entry's plan for about so long, and says how long each of its iterations took, all positive.
  std::function<std::vector<Seconds>(const Entry&, Seconds)> measure;
  std::function<Seconds()> clock;  ///< time since some moment
  /// Answers the question anew on a cluster with other costs and TuneOptions::trials.
  std::function<Answer(const Cluster&, const Trials&)> plan;
  void check() const;  ///< throws Error{kBadInput} naming field, value and rule
};

/// The entries that are measured: the chosen one, and the best one of up to two other roads (the same road
/// over another transport is another one) whose range
/// overlaps its own (any, where no doubt was computed); first one of the other architecture, since what makes
/// whole plans dearer than their operations does not do so alike over servers and without them.
std::vector<std::size_t> leading_plans(const Answer& answer);

struct CheckedAnswer {
  Answer answer;            ///< with Answer::check
  Cluster cluster;          ///< that it was made for: refitted(), or as it was
  std::vector<Plan> plans;  ///< that were measured, in the order of Check::plans
};

/// Measures the leading plans, refits their roads' costs and plans again, where the plans that were run are
/// ranked by what they took; where that chooses a plan that was not run and time is left, once more, three
/// times at most. Then a plan on a measured road is chosen, where the ranking has one: what makes whole plans
/// slower than their operations mostly does so on every road, and one whose costs were not corrected would
/// win by that alone. Likewise one that was run itself, where the last runs were late (Trials::untried).
/// Where a measurement or planning fails the answer stays as it was, and its `check` says why.
///
/// cluster  that the answer was made for
/// throws   Error{kBadInput} for options that break a rule; what is thrown as kInterrupted or kStorage
CheckedAnswer check(const Answer& answer, const Profile& profile, const Cluster& cluster,
                    const CheckOptions& options);

/// "checked 3 plans by running them for 5.00 s: all-to-all ring costs alone 1.02 times a start-up and 1.00
/// times a byte, in streams 1.31 times a start-up and 1.12 times a byte what the probe said; DeAR instead of
/// ByteScheduler-PS". For an answer with `check`.
std::string check_text(const Answer& answer);

}  // namespace commtune::tuner
