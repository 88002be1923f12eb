#pragma once
// What runs of whole plans tell of the costs of their road: MODEL.md section 7.2.

#include <span>
#include <string>

#include "perfmodel/cluster.h"
#include "perfmodel/plan.h"

namespace commtune {

/// By how much a cost is off.
struct CostFactor {
  double startup = 1;        ///< on all start-ups; positive
  double rate = 1;           ///< on all times per byte; positive
  Deviation deviation = {};  ///< of both
  bool operator==(const CostFactor&) const = default;
};

/// By how much the costs of a road are off at one number of workers.
struct RoadFactor {
  Road road;
  CostFactor alone;            ///< of messages that have the road to themselves
  CostFactor streamed;         ///< of those behind each other
  std::string transport = {};  ///< over which; empty: the cluster's own
  bool operator==(const RoadFactor&) const = default;
};

/// The cluster with these roads' fits at this number of workers multiplied by their factors. A road that was
/// priced by formula, or no stream of which was measured, gets fits of its own, made of road_cost()'s curves
/// on the cluster as it was given. The fits' deviation becomes that of the factors.
///
/// factors  each road over a transport at most once
/// throws   Error{kNotFound} for a road that the cluster cannot price over its transport
Cluster refitted(Cluster cluster, std::span<const RoadFactor> factors, int workers);

}  // namespace commtune
