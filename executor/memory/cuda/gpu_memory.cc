#include "executor/memory/cuda/gpu_memory.h"

#include "executor/memory/cuda/cuda_memory.h"
#include "executor/memory/cuda/cuda_notices.h"
#include "executor/memory/cuda/stream_notices.h"

namespace commtune {

std::string why_no_gpu() { return cuda::loaded().why_not; }

int gpu_count() { return cuda::gpu_count(); }

std::unique_ptr<Memory> make_gpu_memory(int number) { return std::make_unique<cuda::CudaMemory>(number); }

std::unique_ptr<StreamNotices> make_stream_notices(int gpu) {
  return std::make_unique<cuda::CudaNotices>(gpu);
}

}  // namespace commtune
