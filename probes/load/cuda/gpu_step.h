#pragma once
// Compute steps on a GPU, for whoever knows nothing of CUDA: also there in a build without it.

#include <memory>

#include "probes/load/compute_step.h"

namespace commtune::probes {

/// Steps that follow each other on a stream of the lowest priority, as a training's layers do: the next ones
/// are queued before one ends, and how long each took is the GPU's own account. The GPU is current from then
/// on in threads that call it.
///
/// number    of the GPU
/// sm_share  of its multiprocessors that they keep busy: over 0, at most 1
/// throws    Error{kUnavailable} naming the reason where this process can use no GPU,
///           Error{kBadInput} where there is no such one
std::unique_ptr<ComputeStep> make_gpu_step(int number, double sm_share);

}  // namespace commtune::probes
