#pragma once
// A thread that waits for one stream's events, asleep until the GPU's interrupt, and calls when one has
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

class EventWatch {
 public:
  explicit EventWatch(const Gpu& gpu);
  /// What it still waits for has to pass first, and is called for.
  ~EventWatch() = default;
  EventWatch(const EventWatch&) = delete;
  EventWatch& operator=(const EventWatch&) = delete;

  /// In the order in which they were recorded on the stream; made with Event::Use::kWaiting.
  ///
  /// passed  what the thread calls then, also where the work before the event failed; throws nothing
  void add(std::shared_ptr<Event> event, std::function<void()> passed);

 private:
  struct Notice {
    std::shared_ptr<Event> event;
    std::function<void()> passed;
  };
  void watch(const std::stop_token& stop, CUcontext context);

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Notice> events_;
  std::jthread thread_;  // last: uses the rest
};

}  // namespace commtune::cuda
