#pragma once
// A method's plan on the road where it is expected to be the fastest: MODEL.md section 7.

#include <optional>

#include "perfmodel/cost/road_cost.h"
#include "perfmodel/simulate/simulate.h"
#include "tuner/methods/method.h"
#include "tuner/planning.h"
#include "tuner/search/search.h"

namespace commtune::tuner {

/// A plan on a road.
struct Candidate {
  PredictedPlan predicted;
  const RoadCost* cost = nullptr;
  std::optional<Seconds> expected = {};  ///< expected_time(), where it was asked for

  Seconds time() const { return predicted.prediction.iteration; }
};

/// Which of two plans is expected to take less: none wins by a price that is mere hope.
class ExpectedOrder {
 public:
  ExpectedOrder(const Planning& job, Simulator& simulator) : job_(job), simulator_(simulator) {}

  bool is_faster(Candidate& one, Candidate& other);
  /// No less than what a candidate is expected to take.
  static Seconds most(const Candidate& candidate);

 private:
  Seconds expected(Candidate& candidate);

  const Planning& job_;
  Simulator& simulator_;
};

/// The method's plan; nothing where the job has no road for it, or time was out before one was tried.
std::optional<Candidate> best_of(const Method& method, const Planning& job, Simulator& simulator,
                                 const OutOfTime& out_of_time);

}  // namespace commtune::tuner
