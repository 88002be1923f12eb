#pragma once
// A replay on whatever its gradients lie on.

#include <memory>

#include "executor/replay/session_workload.h"

namespace commtune {

/// For a rank that trains. Its gradients lie in `memory`: the host's, or what make_gpu_memory() made, which
/// outlives it, as the profile does.
std::unique_ptr<SessionWorkload> make_replay(const Profile& profile, int rank, int workers, Result result,
                                             Memory& memory);

}  // namespace commtune
