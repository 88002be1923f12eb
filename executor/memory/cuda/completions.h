#pragma once
// Which work on streams has ended, for whoever may not block: asked for, or told of by a call. For the
// sources of what uses GPUs.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "executor/memory/cuda/device.h"
#include "executor/memory/cuda/event_watch.h"

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

/// Numbers, small and used again, of work that was put on streams of one GPU. One thread, where the GPU is
/// current; the call of `wake` comes from a thread of its own for each stream.
class Completions {
 public:
  explicit Completions(const Gpu& gpu);
  /// Waits for what is under way.
  ~Completions();
  Completions(const Completions&) = delete;
  Completions& operator=(const Completions&) = delete;

  /// All that the stream was given so far.
  std::uint32_t add(CUstream stream);
  /// What has ended since the last call; never blocks. Valid until the next call.
  /// throws  Error{kUnavailable} where work failed
  std::span<const std::uint32_t> ended();
  bool any_under_way() const { return !under_way_.empty(); }
  /// Comes back when all has ended, well or not.
  void drain() noexcept;

  /// As Memory::wake_with().
  void wake_with(std::function<void()> wake) { waker_.set(std::move(wake)); }

 private:
  struct Work {
    std::uint32_t id = 0;
    std::shared_ptr<Event> event;
    bool has_ended = false;
  };
  std::shared_ptr<Event> take_event();

  const Gpu& gpu_;
  Waker waker_;
  std::map<CUstream, EventWatch> watches_;
  std::vector<Work> under_way_;  // in the order of add()
  std::vector<std::shared_ptr<Event>> free_events_;
  std::vector<std::uint32_t> free_ids_, reported_;
  std::uint32_t next_id_ = 0;
};

}  // namespace commtune::cuda
