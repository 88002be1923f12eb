#pragma once
// A replay on a GPU, for whoever knows nothing of CUDA: also there in a build without it.

#include <memory>

#include "executor/replay/session_workload.h"

namespace commtune {

/// Layers are kernels that end when the time line says, gradients lie in the GPU's memory, and a gradient is
/// ready when the stream of its layer has come behind it.
///
/// memory  what make_gpu_memory() made; outlives this
/// throws  Error{kUnavailable} where it is no GPU's
std::unique_ptr<SessionWorkload> make_gpu_replay(const Profile& profile, int rank, int workers, Result result,
                                                 Memory& memory);

}  // namespace commtune
