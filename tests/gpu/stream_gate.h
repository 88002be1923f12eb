#pragma once
// A stream that stands still until a test lets it go on.

#include <atomic>
#include <future>

#include "executor/memory/cuda/driver.h"

namespace commtune::tests {

class StreamGate {
 public:
  /// What the stream is given from now on waits.
  explicit StreamGate(CUstream stream) : stream_(stream) {
    cuda::expect(cuda::driver().call_on_host(stream, wait, this), "cuLaunchHostFunc");
  }
  /// Opens it, and waits for what the stream was given.
  ~StreamGate() {
    open();
    cuda::driver().synchronize_stream(stream_);
  }
  StreamGate(const StreamGate&) = delete;
  StreamGate& operator=(const StreamGate&) = delete;

  void open() {
    if (!is_open_.exchange(true)) opened_.set_value();
  }

 private:
  static void CUDA_CB wait(void* gate) noexcept { static_cast<StreamGate*>(gate)->passed_.wait(); }

  const CUstream stream_;
  std::atomic<bool> is_open_ = false;
  std::promise<void> opened_;
  const std::shared_future<void> passed_ = opened_.get_future().share();
};

}  // namespace commtune::tests
