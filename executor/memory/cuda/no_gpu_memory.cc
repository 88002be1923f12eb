// In a build without CUDA's headers.

#include "executor/memory/cuda/gpu_memory.h"
#include "executor/memory/cuda/stream_notices.h"
#include "perfmodel/base/error.h"

namespace commtune {

std::string why_no_gpu() { return "this commtune was built without CUDA"; }

int gpu_count() { return 0; }

std::unique_ptr<Memory> make_gpu_memory(int /*number*/) {
  throw Error(ErrorCode::kUnavailable, why_no_gpu());
}

std::unique_ptr<StreamNotices> make_stream_notices(int /*gpu*/) {
  throw Error(ErrorCode::kUnavailable, why_no_gpu());
}

}  // namespace commtune
