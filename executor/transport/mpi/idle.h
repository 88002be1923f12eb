#pragma once
// How the MPI transport's communication thread passes the time while nothing completes: without burning the
// core that compute needs, and without being late when something arrives.
//
// Open MPI has no call that blocks without spinning. Its TCP transport is driven by an event loop whose epoll
// descriptor becomes readable exactly when there is something to do, so the thread sleeps in poll() on it
// (and on an eventfd for wake()). Nothing depends on that being complete: every sleep is bounded, and after
// it the library is asked again.

#include <memory>

#include "executor/transport/mpi/doorbell.h"
#include "executor/transport/mpi/mpi.h"
#include "executor/transport/transport.h"

namespace commtune {

class Idle {
 public:
  virtual ~Idle() = default;
  Idle() = default;
  Idle(const Idle&) = delete;
  Idle& operator=(const Idle&) = delete;

  /// A wait begins.
  virtual void begin() = 0;
  /// Something was asked and nothing had happened: passes some time, until the deadline at most.
  /// transfers  some are under way
  /// in_host    some of them with ranks of this host, through shared memory: only the bell tells about those
  virtual void pause(Deadline until, bool transfers, bool in_host) = 0;
  /// Whether wake() was called since the last time this was asked.
  virtual bool woken() = 0;
  /// From any thread.
  virtual void wake() noexcept = 0;
};

/// Call after the library has started: it looks for the library's descriptors.
/// bell  rung by ranks of this host; outlives the result
std::unique_ptr<Idle> make_idle(MpiOptions::Idle kind, Doorbell& bell);

}  // namespace commtune
