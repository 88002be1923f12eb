#pragma once
// Notices of one GPU's streams: an event and a call for each. For the sources of what uses GPUs.

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <map>
#include <mutex>

#include "executor/memory/cuda/device.h"
#include "executor/memory/cuda/event_watch.h"
#include "executor/memory/cuda/stream_notices.h"

namespace commtune::cuda {

class CudaNotices final : public StreamNotices {
 public:
  explicit CudaNotices(int gpu) : gpu_(gpu) {}

  void after(void* stream, std::function<void()> ended) override;
  void settle() override;

 private:
  const Gpu gpu_;
  std::mutex mutex_;
  std::condition_variable settled_;
  std::size_t outstanding_ = 0;
  std::map<CUstream, EventWatch> watches_;  // last: their threads use the rest
};

}  // namespace commtune::cuda
