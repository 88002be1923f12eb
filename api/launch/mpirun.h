#pragma once
// The command line that starts a program on every host of a job: Open MPI's mpirun, and nothing else, reaches
// other machines.

#include <string>
#include <vector>

#include "api/launch/hosts.h"

namespace commtune::api {

/// What the command depends on beside the job: facts of this machine and of the environment.
struct LaunchSite {
  bool superuser = false;   ///< effective user id 0
  int cores = 1;            ///< of this machine
  bool single_copy = true;  ///< one process may copy from another's memory (process_vm_readv)
};

/// Looks at this machine.
LaunchSite inspect_site();

struct MpirunOptions {
  std::string program = "mpirun";
  std::vector<std::string> extra;         ///< as the user gave them (--mpirun-arg), before the program
  std::vector<std::string> rank_command;  ///< what each rank executes
  HostList hosts;
  int ranks = 0;                     ///< 0: one for each slot
  bool remote_agent_chosen = false;  ///< OMPI_MCA_plm_rsh_agent is set, so the user chose how to reach hosts
};

/// Ranks that the options ask for, else one for each known slot; 0 when the launcher shall decide. Throws
/// Error{kBadInput} when the hosts have fewer slots.
int ranks_to_start(const MpirunOptions& options);

/// The argument vector, for execvp. Ranks fill the hosts in order, slot by slot; cores are not assigned,
/// since the replayed compute leaves them free.
///
/// throws  Error{kBadInput} when more ranks are asked for than the hosts have slots
std::vector<std::string> mpirun_command(const MpirunOptions& options, const LaunchSite& site);

/// The same as one line that a POSIX shell would read back as this vector: to be shown, never executed.
std::string quoted(const std::vector<std::string>& argv);

}  // namespace commtune::api
