#pragma once
// What a message costs on a road: the one place where the roads differ for a prediction. MODEL.md section 4.

#include <optional>
#include <vector>

#include "perfmodel/cluster.h"
#include "perfmodel/cost/fit_source.h"
#include "perfmodel/cost/road_cost.h"
#include "perfmodel/fit/curve.h"
#include "perfmodel/plan.h"

namespace commtune {

/// Time from the start of a message that has the channel to itself until its last bytes have been sent and
/// the next message may follow, by size, with both stages as one operation. What is missing from `alone` is
/// the time that the last round takes to arrive after it has been sent.
Curve until_sent(const RoadCost& cost);

/// The most by which any plan's iteration is shorter because ranks are out of step.
/// total  bytes of all gradients
Seconds most_skew(const RoadCost& cost, Bytes total);

/// Fits of exactly this operation at this N and S are used as they are. Otherwise the formulas of MODEL.md
/// section 4 over the link fits: a collective's steps are priced with the slower of the links that it
/// crosses, cards carry all the workers of their host, and, where the same operation was measured at another
/// N, the formula's latency and time per byte are scaled by what that measurement was to the formula there.
///
/// Throws Error{kNotFound} when the cluster has neither a fit of the operation nor of the links that the
/// formulas need; Error{kBadInput} when the road does not fit the number of workers. With one worker every
/// cost is zero.
///
/// detail  kTimes: without `explanation` and `server_binds`, which a simulated time does not need
RoadCost road_cost(const Road& road, const Cluster& cluster, int workers,
                   CostDetail detail = CostDetail::kWhole);

struct Formula;

/// The costs of a road of which no stream of messages was measured. The occupancies are the formula's over
/// the links' fits, with start-up and time per byte scaled as measured streams of the nearest other road
/// depart from their formula; what a message takes alone is the formula's. nullopt if no road was measured
/// with a stream, or the links were not measured.
std::optional<Formula> carried_streams(const Road& road, const Cluster& cluster, int workers);

/// The fits from which road_cost() computes the cost of a road, to say what a prediction rests on: the road's
/// own fits if it was measured at this N; otherwise, or if no stream of it was measured, also the fits that
/// calibrate the formulas and those of the links. Not listed are the links' fits that only cap a measured
/// cost or divide it among the stages.
std::vector<FitSource> fits_behind(const Road& road, const Cluster& cluster, int workers);

}  // namespace commtune
