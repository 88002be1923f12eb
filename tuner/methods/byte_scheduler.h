#pragma once
// ByteScheduler (Peng et al., SOSP 2019): tensors cut into pieces, the most urgent piece first, a credit of
// bytes in flight, and a barrier per layer.

#include "tuner/planning.h"

namespace commtune::tuner {

/// Which server gets a piece, where servers take messages whole.
enum class ServerChoice {
  kHash,   ///< BytePS's (server_keys.h)
  kInTurn  ///< pieces are dealt out in the order of the plan's list
};

struct ByteSchedulerOptions {
  Bytes partition;  ///< largest piece; at least one element
  Bytes credit;     ///< Plan::credit
  Barrier barrier = Barrier::kPerLayer;
  ServerChoice servers = ServerChoice::kHash;
};

/// The plan for given settings. Servers take pieces by priority; where a road needs one order on all ranks,
/// the order that priority would give is simulated and frozen.
Plan byte_scheduler(const Planning& job, const RoadOption& option, const ByteSchedulerOptions& settings);

/// Partition and credit chosen by simulation: a coarse grid of both, in bytes, then around its best by ever
/// smaller steps, down to 2^(1/4). Its authors' tuner finds them by Bayesian optimisation over runs. Where
/// the job asks to be thorough (Planning::thorough) around two dozen of the grid's best, down to 2^(1/16).
/// tests/bench/methods compares with full grids.
Plan tuned_byte_scheduler(const Planning& job, const RoadOption& option);

/// BytePS's partition, and a credit of three more.
Plan untuned_byte_scheduler(const Planning& job, const RoadOption& option);

/// The order in which a plan's messages would start by priority on this road, made the plan's list order.
Plan frozen(const Planning& job, const RoadOption& option, Plan plan);

}  // namespace commtune::tuner
