// In a build without CUDA's headers.

#include "executor/memory/cuda/gpu_memory.h"
#include "perfmodel/base/error.h"
#include "probes/load/cuda/gpu_step.h"

namespace commtune::probes {

std::unique_ptr<ComputeStep> make_gpu_step(int /*number*/, double /*sm_share*/) {
  throw Error(ErrorCode::kUnavailable, why_no_gpu());
}

}  // namespace commtune::probes
