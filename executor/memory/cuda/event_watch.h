#pragma once
// A thread that waits for one stream's events, asleep until the GPU's interrupt, and says when one has
// passed. It puts nothing on the GPU: a call on the host that waits there for its turn keeps the GPU from
// other processes' work (two ranks on one card took twice as long). For the sources of this folder.

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>

#include "executor/memory/cuda/device.h"

namespace commtune::cuda {

/// Whom to call, from any thread.
class Waker {
 public:
  /// Nobody is being called any more when this returns.
  void set(std::function<void()> wake) {
    const std::lock_guard lock(mutex_);
    wake_ = std::move(wake);
  }
  void call() {
    const std::lock_guard lock(mutex_);
    if (wake_) wake_();
  }

 private:
  std::mutex mutex_;
  std::function<void()> wake_;
};

class EventWatch {
 public:
  EventWatch(const Gpu& gpu, std::shared_ptr<Waker> waker);
  /// What it still waits for has to pass first.
  ~EventWatch() = default;
  EventWatch(const EventWatch&) = delete;
  EventWatch& operator=(const EventWatch&) = delete;

  /// In the order in which they were recorded on the stream; made with Event::Use::kWaiting.
  void add(std::shared_ptr<Event> event);

 private:
  void watch(const std::stop_token& stop, CUcontext context);

  const std::shared_ptr<Waker> waker_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<std::shared_ptr<Event>> events_;
  std::jthread thread_;  // last: uses the rest
};

}  // namespace commtune::cuda
