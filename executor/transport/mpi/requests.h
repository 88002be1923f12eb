#pragma once
// What Open MPI's collectives need of its transport, which knows when the library has to be looked after.

#include <mpi.h>

#include <functional>
#include <memory>

#include "executor/transport/mpi/job.h"

namespace commtune::mpi {

/// Implemented by the transport of Open MPI alone.
class Requests {
 public:
  virtual ~Requests() = default;
  Requests() = default;
  Requests(const Requests&) = delete;
  Requests& operator=(const Requests&) = delete;

  /// The transport's wait() calls `ended` when the request has, and returns; it throws where it failed.
  ///
  /// owner  who may forget() the request
  virtual void watch(MPI_Request request, const void* owner, std::function<void()> ended) = 0;
  /// Calls for `owner` no longer. Returns whether a request of its was under way: its memory stays the
  /// library's.
  virtual bool forget(const void* owner) noexcept = 0;

  virtual const std::shared_ptr<MpiJob>& job() const = 0;
};

}  // namespace commtune::mpi
