#pragma once
// The Open MPI backend: all that the rest of the project sees of MPI.

#include <memory>

#include "executor/transport/transport.h"

namespace commtune {

/// Connects this process to the others that mpirun (or srun) started with it; alone it is a job of one rank.
/// Sets those of Open MPI's own parameters that this transport was measured to be fastest with and nobody has
/// set in the environment (the table in mpi.cc).
///
/// Once in a process: the library cannot be started twice. Its destructor leaves the job (MPI_Finalize, which
/// waits for the others), unless something was thrown before.
/// throws Error{kUnavailable} when the library cannot start or lacks thread support.
std::unique_ptr<Transport> make_mpi_transport();

}  // namespace commtune
