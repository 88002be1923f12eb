#pragma once
// The joint search: road x servers x placement x fusion x partition x order x barrier x decoupling.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "perfmodel/plan.h"
#include "perfmodel/simulate/simulate.h"
#include "tuner/planning.h"

namespace commtune::tuner {

struct SearchOptions {
  double gap_limit = 0.002;            ///< stop when the best plan is this close to the bound
  std::uint64_t max_events = 300'000;  ///< and when this many message stages have been simulated
  OutOfTime out_of_time{};
  void check() const;  ///< throws Error{kBadInput} naming field, value and rule
};

enum class StopReason {
  kBound,    ///< no plan on the job's roads can be predicted to be faster by more than gap_limit
  kBudget,   ///< max_events
  kTime,     ///< out_of_time
  kNoBetter  ///< no move that the search knows makes its best plan faster
};

struct SearchReport {
  Plan best;
  Prediction prediction;
  std::uint64_t events = 0;  ///< message stages simulated
  StopReason stop = StopReason::kNoBetter;
};

/// A plan on one of the job's roads, with its prediction.
struct PredictedPlan {
  Plan plan;
  Prediction prediction;
};

/// The fastest plan that is found, never slower than any of the starts.
///
/// starts   plans of the job, at least one; their roads must be among the job's
/// returns  a plan that satisfies check(); deterministic
SearchReport joint_search(const Planning& job, const std::vector<PredictedPlan>& starts,
                          const SearchOptions& options = {});

}  // namespace commtune::tuner
