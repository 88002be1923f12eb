#pragma once
// How the MPI transport's communication thread passes the time while nothing completes: without burning the
// core that compute needs, and without being late when something arrives.
//
// Open MPI has no call that blocks without spinning. Its TCP transport is driven by an event loop whose epoll
// descriptor becomes readable exactly when there is something to do, so the thread sleeps in poll() on it
// (and on an eventfd for wake()). Nothing depends on that being complete: every sleep is bounded, and after
// it the library is asked again.

#include <poll.h>

#include <atomic>
#include <vector>

#include "executor/transport/mpi/doorbell.h"
#include "executor/transport/transport.h"

namespace commtune {

/// wake() from any thread, everything else from the communication thread.
class Idle {
 public:
  /// Call after the library has started: it looks for the library's descriptors.
  /// bell  rung by ranks of this host; outlives this
  explicit Idle(Doorbell& bell);
  ~Idle();
  Idle(const Idle&) = delete;
  Idle& operator=(const Idle&) = delete;

  /// A wait begins.
  void begin();
  /// Something was asked and nothing had happened: passes some time, until the deadline at most.
  /// transfers  some are under way
  /// in_host    some of them with ranks of this host, through shared memory: only the bell tells about those
  void pause(Deadline until, bool transfers, bool in_host);
  /// Whether wake() was called since the last time this was asked.
  bool woken() { return woken_.load(std::memory_order_relaxed) && woken_.exchange(false); }
  void wake() noexcept;

 private:
  void sleep(std::chrono::nanoseconds most);

  Doorbell& bell_;
  const int event_;
  std::vector<pollfd> descriptors_;  // the event, the bell, then the library's
  std::atomic<bool> woken_{false}, sleeping_{false};
  int tries_ = 0;
  static constexpr std::chrono::nanoseconds kFirstInHostBound = std::chrono::microseconds(100);
  std::chrono::nanoseconds in_host_bound_ = kFirstInHostBound;
};

}  // namespace commtune
