#include "executor/memory/cuda/cuda_notices.h"

#include <memory>
#include <utility>

namespace commtune::cuda {

void CudaNotices::after(void* stream, std::function<void()> ended) {
  const auto handle = static_cast<CUstream>(stream);
  const GpuGuard guard(gpu_);
  const std::lock_guard lock(mutex_);  // recorded and watched in the same order
  auto event = std::make_shared<Event>(Event::Use::kWaiting);
  event->record(handle);
  watches_.try_emplace(handle, gpu_).first->second.add(std::move(event), [this, ended = std::move(ended)] {
    ended();
    const std::lock_guard counting(mutex_);
    if (--outstanding_ == 0) settled_.notify_all();
  });
  ++outstanding_;
}

void CudaNotices::settle() {
  std::unique_lock lock(mutex_);
  settled_.wait(lock, [&] { return outstanding_ == 0; });
}

}  // namespace commtune::cuda
