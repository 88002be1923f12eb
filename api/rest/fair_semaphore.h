#pragma once
// Limits on requests that compute: how many compute at a time, and for how long each.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <list>
#include <mutex>

#include "tuner/whatif.h"

namespace commtune::api::rest {

/// A fair semaphore: threads get a place in the order in which they asked. A place that is given back goes
/// directly to the first thread that waits, so no thread waits longer than the work of those before it takes.
/// std::counting_semaphore promises no order, and libstdc++ implements its timed wait by sleeping in growing
/// steps, which is late when processors are busy.
class FairSemaphore {
 public:
  /// count  places, which is how many threads may work at a time
  explicit FairSemaphore(std::size_t count) : free_(count) {}
  /// Waits for a place, at most so long. Returns false if there was none in time.
  bool take(std::chrono::milliseconds wait);
  /// After each take() that returned true.
  void give_back();
  /// Number of threads that wait now.
  std::size_t waiting() const;

 private:
  struct Waiter {
    std::condition_variable called;
    bool served = false;
  };
  mutable std::mutex mutex_;  // guards the two below
  std::size_t free_;          ///< 0 while any thread waits
  std::list<Waiter*> waiting_;
};

/// Holds a place for as long as it lives.
class Permit {
 public:
  /// Waits for a place. Throws Error{kUnavailable} if there is none within `wait`.
  Permit(FairSemaphore& semaphore, std::chrono::milliseconds wait);
  ~Permit() { semaphore_.give_back(); }
  Permit(const Permit&) = delete;
  Permit& operator=(const Permit&) = delete;

 private:
  FairSemaphore& semaphore_;
};

/// A watch that throws Error{kBadInput} when `most` has passed since this call, and Error{kInterrupted} when
/// `stopping` is true.
tuner::Watch time_limit(std::chrono::milliseconds most, const std::atomic<bool>& stopping);

/// Makes a watch that is asked between points be asked within each point as well. The result calls `watch`
/// with the fraction that it was last told, passes on what it throws, and itself never ends a point early.
tuner::OutOfTime within_points(tuner::Watch& watch);

using Clock = std::function<std::chrono::steady_clock::time_point()>;

/// For a search: returns true from the moment `end` on. Throws Error{kInterrupted} when `stopping` is true.
tuner::OutOfTime out_of_time_at(std::chrono::steady_clock::time_point end, const Clock& clock,
                                const std::atomic<bool>& stopping);

}  // namespace commtune::api::rest
