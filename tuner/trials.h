#pragma once
// What running plans told, where the question is asked once more: MODEL.md section 7.2.

#include <string>
#include <vector>

#include "perfmodel/base/units.h"
#include "perfmodel/plan.h"
#include "tuner/planning.h"

namespace commtune::tuner {

/// A road over one transport.
struct TransportRoad {
  Road road;
  std::string transport = {};  ///< empty: the cluster's own
  bool operator==(const TransportRoad&) const = default;
};
/// That of a plan.
TransportRoad road_of(const Plan& plan);

/// What running a plan took, which is surer than what its road's costs say of it.
struct PlanTime {
  Plan plan;
  std::string digest;    ///< the plan's
  Seconds iteration{};   ///< median
  Seconds half_width{};  ///< of its 95 % interval
  Seconds late{};  ///< so much of it is none of its road's costs, and of the road's other plans may be part
};

/// What a plan takes by its prediction and by a run of it: as far towards what the run took as that is more
/// than the run's own standard deviation away (positive part of the estimator of James and Stein, 1961), so a
/// run whose iterations differ much is neither ignored nor believed.
///
/// half_width  of the 95 % interval of `measured`
Seconds expected_after_run(Seconds predicted, Seconds measured, Seconds half_width);

/// What is known from running plans before the question is asked once more.
struct Trials {
  /// A plan whose run took anything else than predicted is ranked by it, others on its road with RoadDelay. A
  /// method's plan stays until another of its plans is expected to be faster by more than `untried`.
  std::vector<PlanTime> runs = {};
  /// Methods take these roads where there is one for them, and only plans on them are chosen. Empty: all.
  std::vector<TransportRoad> roads = {};
  /// By such a part a plan that was not run has to be faster than each that was, or one of these is chosen:
  /// how much longer than predicted runs took.
  double untried = 0;

  /// Of the plan with this digest; nullptr where it was not run.
  const PlanTime* run_of(const std::string& digest) const;
};

/// What a road is late by, going by the runs of plans on it, or where there was none by those on roads of its
/// architecture.
RoadDelay delay_on(const TransportRoad& road, const std::vector<PlanTime>& runs);

}  // namespace commtune::tuner
