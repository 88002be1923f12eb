#pragma once
// Which of NCCL's tunings the measurements of a cluster call the fastest, by collective, ranks and size.

#include "perfmodel/cluster.h"
#include "perfmodel/nccl/tuning_table.h"

namespace commtune::tuner {

/// Only of sizes that were measured, and only where a tuning is faster than NCCL's own choice by more than
/// the doubt in both fits: elsewhere NCCL's choice stands, as where that was not measured. Of tunings that
/// can be told apart no better, one that leaves the number of channels to NCCL, and the one whose name comes
/// first. Empty where nothing of NCCL was measured.
NcclTuningTable nccl_tunings(const Cluster& cluster);

}  // namespace commtune::tuner
