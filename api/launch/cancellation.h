#pragma once
// How somebody outside (Ctrl-C, a request to the service) asks work under way to end early.

#include <atomic>

namespace commtune::api {

/// One piece of work's stop button. cancel() may be called from a signal handler and from any thread;
/// everything else from any thread. It is never un-pressed.
class Cancellation {
 public:
  Cancellation();
  ~Cancellation();
  Cancellation(const Cancellation&) = delete;
  Cancellation& operator=(const Cancellation&) = delete;

  void cancel() noexcept;
  /// How often cancel() was called: the second time means "now".
  int requests() const noexcept { return requests_.load(std::memory_order_relaxed); }
  bool requested() const noexcept { return requests() > 0; }
  /// Readable (poll) when cancel() was called since the last acknowledge().
  int descriptor() const noexcept { return descriptor_; }
  void acknowledge() noexcept;

 private:
  std::atomic<int> requests_{0};
  const int descriptor_;  ///< an eventfd
};

/// While it lives, SIGINT and SIGTERM press this button instead of ending the process. One at a time.
class InterruptGuard {
 public:
  explicit InterruptGuard(Cancellation& cancellation);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
};

}  // namespace commtune::api
