#pragma once
// The same launch inside a Slurm allocation: srun starts the ranks and PMIx introduces them to each other.

#include "api/launch/mpirun.h"

namespace commtune::api {

/// True when the launcher that was set is Slurm's.
bool is_srun(const std::string& program);

/// The argument vector of a job step of `options.ranks` ranks (0: one a slot) on the hosts, or anywhere in
/// the allocation when they are this machine. Ranks fill the hosts in order. The step may share the
/// allocation's processors with the step that asks.
///
/// throws  Error{kBadInput} when more ranks are asked for than the hosts have slots, or the hosts have
///         different numbers of slots: srun has no words for those
std::vector<std::string> srun_command(const MpirunOptions& options);

/// mpirun_command or srun_command, by the program that was set.
std::vector<std::string> launch_command(const MpirunOptions& options, const LaunchSite& site);

}  // namespace commtune::api
