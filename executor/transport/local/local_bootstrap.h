#pragma once
// A job whose ranks are threads of one process: they meet in its memory, and whatever connects them then
// needs nobody who starts processes.

#include <memory>
#include <vector>

#include "executor/transport/bootstrap/bootstrap.h"

namespace commtune {

/// One rank's place in such a job.
class LocalBootstrap : public Bootstrap {
 public:
  /// Collective, as all_gather(): hands rank 0's object, which lives as long as anybody has it, to all ranks.
  ///
  /// own   of rank 0; of the others nothing is looked at
  virtual std::shared_ptr<void> share(std::shared_ptr<void> own, Deadline until) = 0;
};

/// n places in one job, rank 0 first; hand one to each thread. Its hosts are those of
/// make_local_transports(). abort() makes the others' calls throw Error{kPeerLost} with its text. Leaving
/// waits for nobody.
std::vector<std::shared_ptr<Bootstrap>> make_local_bootstraps(int n, int ranks_per_host = 1);

}  // namespace commtune
