#pragma once
// The Open MPI backend: all that the rest of the project sees of MPI.

#include <memory>
#include <string>

#include "executor/transport/transport.h"

namespace commtune {

struct MpiOptions {
  /// How wait() passes the time when nothing has completed; see mpi.cc for what was measured.
  enum class Idle {
    kKernel,  ///< sleeps in poll() on what Open MPI's own event loop listens to; the default
    kYield,   ///< spins with sched_yield(): least latency where every rank has a core to itself
    kSleep,   ///< sleeps with an exponential back-off
  };
  Idle idle = Idle::kKernel;
  std::string host;  ///< this rank's host name as others shall see it; empty: the system's
  /// Set Open MPI's own parameters (only those that nobody set in the environment) to what this transport
  /// was measured to be fastest with; see the table in mpi.cc. Must be equal on all ranks.
  bool tune_library = true;
};

/// Connects this process to the others that mpirun (or srun) started with it; alone it is a job of one rank.
/// Once in a process: the library cannot be started twice. Its destructor leaves the job (MPI_Finalize, which
/// waits for the others), unless something was thrown before.
/// throws Error{kUnavailable} when the library cannot start or lacks thread support.
std::unique_ptr<Transport> make_mpi_transport(MpiOptions options = {});

}  // namespace commtune
