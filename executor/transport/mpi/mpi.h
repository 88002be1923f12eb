#pragma once
// The Open MPI backend: all that the rest of the project sees of MPI.

#include <memory>

#include "executor/transport/mpi/job.h"
#include "executor/transport/transport.h"

namespace commtune {

/// Open MPI's messages between the ranks of its job. Its destructor leaves the job if nobody else holds it.
/// throws  Error{kUnavailable} where this rank cannot have what wakes it, Error{kPeerLost}
std::unique_ptr<Transport> make_mpi_transport(const std::shared_ptr<MpiJob>& job = join_mpi_job());

}  // namespace commtune
