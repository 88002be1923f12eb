#pragma once
// The formulas of MODEL.md section 4: a road's cost from the fits of links and of summing. For stage_cost.cc.

#include "perfmodel/cluster.h"
#include "perfmodel/cost/road_cost.h"
#include "perfmodel/cost/topology.h"

namespace commtune {

/// What the formulas of a road give: MODEL.md sections 4.2 and 4.3.
struct Formula {
  StageCost both, reduce, distribute;
  bool server_binds = false;
  Bytes smallest, largest;  ///< message sizes whose parts lie in the links' measured range
};

/// a + b, for two stages one after the other.
StageCost sum_of(const StageCost& a, const StageCost& b);

/// Throws Error{kNotFound} when the cluster has no fit of the links that the road needs.
Formula formula_of(const Road& road, const Cluster& cluster, int workers);
/// place  where its workers are: topology_of(cluster, workers)
Formula formula_of(const Road& road, const Cluster& cluster, const Topology& place);

/// The same with links that pass bytes one way at the rate of a stream and sums that cost nothing: no
/// operation on the road is faster. Errors as above.
Formula wire_of(const Road& road, const Cluster& cluster, int workers);
Formula wire_of(const Road& road, const Cluster& cluster, const Topology& place);

/// How often the busiest rank adds each byte of a message, on average, by the formulas: (N-1)/N on a ring,
/// log2(N) by recursive doubling, N/S at a server.
double summed_per_byte(const Road& road, const Cluster& cluster, const Topology& place);

}  // namespace commtune
