#pragma once
// ByteScheduler (Peng et al., SOSP 2019): tensors cut into pieces, the most urgent piece first, a credit of
// bytes in flight, and a barrier per layer.

#include "tuner/planning.h"

namespace commtune::tuner {

struct ByteSchedulerOptions {
  Bytes partition;  ///< largest piece; at least one element
  Bytes credit;     ///< Plan::credit
  Barrier barrier = Barrier::kPerLayer;
};

/// The plan for given settings. Servers take pieces by priority; where a road needs one order on all ranks,
/// the order that priority would give is simulated and frozen.
Plan byte_scheduler(const Planning& job, const RoadOption& option, const ByteSchedulerOptions& settings);

/// Partition and credit chosen by simulating a grid of both, as ByteScheduler's own tuner would find them by
/// trying.
Plan tuned_byte_scheduler(const Planning& job, const RoadOption& option);

/// The order in which a plan's messages would start by priority on this road, made the plan's list order.
Plan frozen(const Planning& job, const RoadOption& option, Plan plan);

}  // namespace commtune::tuner
