#pragma once
// Work that keeps a processor busy: how much of it at a time, and how long for one request.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <list>
#include <mutex>

#include "tuner/whatif.h"

namespace commtune::api::rest {

/// So many places, given to those who wait in the order in which they came. A place that gets free is handed
/// on at once: who asks later never overtakes, so that nobody waits longer than the work before him takes.
/// (std::counting_semaphore promises no order, and in libstdc++ a wait with a time limit naps for ever longer
/// on busy processors.)
class Places {
 public:
  explicit Places(std::size_t count) : free_(count) {}
  /// False when there was none in time.
  bool take(std::chrono::milliseconds wait);
  void give_back();
  std::size_t waiting() const;

 private:
  struct Waiter {
    std::condition_variable called;
    bool served = false;
  };
  mutable std::mutex mutex_;  // guards the two below
  std::size_t free_;          ///< 0 while anybody waits
  std::list<Waiter*> waiting_;
};

/// A place among the questions that are worked on at a time.
class Permit {
 public:
  /// Waits for a place. Throws Error{kUnavailable} when none gets free in time.
  Permit(Places& places, std::chrono::milliseconds wait);
  ~Permit() { places_.give_back(); }
  Permit(const Permit&) = delete;
  Permit& operator=(const Permit&) = delete;

 private:
  Places& places_;
};

/// From now on: throws Error{kBadInput} once `most` has passed, Error{kInterrupted} once `stopping` is true.
tuner::Watch time_limit(std::chrono::milliseconds most, const std::atomic<bool>& stopping);

/// A watch that is also looked at within each point: throws what it throws, and is told how far it was last.
tuner::OutOfTime within_points(tuner::Watch& watch);

using Clock = std::function<std::chrono::steady_clock::time_point()>;

/// For a plan: out of time at `end`. Throws Error{kInterrupted} once `stopping` is true.
tuner::OutOfTime out_of_time_at(std::chrono::steady_clock::time_point end, const Clock& clock,
                                const std::atomic<bool>& stopping);

}  // namespace commtune::api::rest
