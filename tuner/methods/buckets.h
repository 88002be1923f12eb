#pragma once
// Fusion to a size that does not depend on the job: PyTorch's DistributedDataParallel, Horovod.

#include "tuner/planning.h"

namespace commtune::tuner {

/// Tensors gathered in the order in which they appear until a bucket holds at least `cap` (the first one
/// `first_cap`), then sent. Whole tensors, so a bucket may exceed its cap by less than its last tensor.
Plan buckets(const Planning& job, const RoadOption& option, Bytes first_cap, Bytes cap);

/// DistributedDataParallel as it comes: 25 MiB, the first bucket 1 MiB (Li et al., VLDB 2020).
Plan ddp_buckets(const Planning& job, const RoadOption& option);

/// Horovod's fusion buffer as it comes (Sergeev, Del Balso 2018): every cycle of 1 ms, what has appeared and
/// the channel has room for goes as one message of at most 128 MiB; while an operation runs, the next one
/// fills.
Plan horovod_buffers(const Planning& job, const RoadOption& option);

}  // namespace commtune::tuner
