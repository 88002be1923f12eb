#pragma once
// Work that keeps a processor busy: how much of it at a time, and how long for one request.

#include <atomic>
#include <chrono>
#include <semaphore>

#include "tuner/whatif.h"

namespace commtune::api::rest {

/// A place among the questions that are worked on at a time.
class Permit {
 public:
  /// Waits for a place. Throws Error{kUnavailable} when none gets free in time.
  Permit(std::counting_semaphore<>& places, std::chrono::milliseconds wait);
  ~Permit() { places_.release(); }
  Permit(const Permit&) = delete;
  Permit& operator=(const Permit&) = delete;

 private:
  std::counting_semaphore<>& places_;
};

/// From now on: throws Error{kBadInput} once `most` has passed, Error{kInterrupted} once `stopping` is true.
/// Looked at between points, so that one more may be finished.
tuner::Watch time_limit(std::chrono::milliseconds most, const std::atomic<bool>& stopping);

}  // namespace commtune::api::rest
