#pragma once
// What the draws of the fits do not show: that the costs of a whole road, or the traffic of a whole plan, are
// off by a factor. MODEL.md section 7.

#include <cstdint>
#include <vector>

#include "perfmodel/cluster.h"
#include "tuner/planning.h"
#include "tuner/tuner.h"

namespace commtune::tuner {

/// The cost where all start-ups and all times per byte take exp(z * deviation) times as long, by the cost's
/// own deviation and that of plans together: an end of what is left open, also where both cannot be off so.
RoadCost moved(RoadCost cost, double z, double plan_deviation);

/// The logarithms of factors on all start-ups and on all times per byte.
struct LogFactor {
  double startup = 0, rate = 0;
};

/// One error of a road's costs, for a standard normal value of 1: of messages alone, and of streams.
struct CostError {
  LogFactor alone, streamed;
};

/// The errors that a cost may have, each independent of the others: its own deviation, of messages alone and
/// of streams at once, and that of plans together, or one after the other where start-ups and times per byte
/// are off in opposite ways.
std::vector<CostError> errors_of(const RoadCost& cost, double plan_deviation);

/// The cost with z times this error.
RoadCost with_error(RoadCost cost, double z, const CostError& error);

/// What a plan takes on a road, to compare with what it takes where that costs more or less: of servers in
/// turn with few of the hosts looked at (among_neighbours).
Seconds comparable_time(Simulator& simulator, const FlatPlan& plan, const RoadCost& cost);

/// The same of a prediction's own cost: simulated anew only where the prediction looked at more.
Seconds comparable_to(Seconds predicted, Simulator& simulator, const FlatPlan& plan, const RoadCost& cost);

/// By entry, under the fitted costs: what other times of its plan are compared with. As predicted where the
/// plan was run.
std::vector<Seconds> comparable_times(const std::vector<Entry>& ranking, const Planning& job);

/// What a plan's iteration takes on average over the errors that its road's cost may have (Gauss-Hermite rule
/// of three points for each of errors_of() without plan_deviation). As predicted where they are of no matter.
Seconds expected_time(Simulator& simulator, const FlatPlan& plan, const RoadCost& cost, Seconds predicted);

/// How the predicted iteration of an entry changes when its costs are off by z, a standard normal value.
struct Response {
  bool doubted = false;  ///< false: its costs have no deviation, or it is unknown
  double own = 0;  ///< part of z's variance that is this plan's own; all plans on one road share the rest
  double less = 0,
         more = 0;  ///< logarithm of the iteration at both ends of z's 90 % interval, over that at 0
};

/// The response of every entry. A doubted entry is simulated at both ends of the 90 % interval of each of its
/// errors_of(), of which it gets the root of the sum of squares. A plan that hides all its communication
/// behind compute hardly responds, but for what its road is late by (RoadDelay). One that was run is in doubt
/// by Entry::run_deviation, whatever its costs are.
///
/// comparable  comparable_times() of the ranking
std::vector<Response> responses(const std::vector<Entry>& ranking, const std::vector<Seconds>& comparable,
                                const Planning& job, const Cluster& cluster, const OutOfTime& out_of_time);

/// Multiplies times[entry][draw] by a factor drawn for each road and each plan. The result has `count` draws
/// of every entry; if it was simulated on fewer, those are repeated in turn. Entries without doubt keep their
/// times.
///
/// least  seconds that compute alone takes: no factor makes an iteration shorter
std::vector<std::vector<double>> with_factors(const std::vector<std::vector<double>>& times,
                                              const std::vector<Entry>& ranking,
                                              const std::vector<Response>& responses, std::size_t count,
                                              std::uint64_t seed, Seconds least = {});

}  // namespace commtune::tuner
