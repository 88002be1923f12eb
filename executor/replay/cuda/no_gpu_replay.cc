// In a build without CUDA's headers.

#include "executor/memory/cuda/gpu_memory.h"
#include "executor/replay/cuda/gpu_replay.h"
#include "perfmodel/base/error.h"

namespace commtune {

std::unique_ptr<SessionWorkload> make_gpu_replay(const Profile& /*profile*/, int /*rank*/, int /*workers*/,
                                                 Result /*result*/, Memory& /*memory*/) {
  throw Error(ErrorCode::kUnavailable, why_no_gpu());
}

}  // namespace commtune
