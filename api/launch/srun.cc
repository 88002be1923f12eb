#include "api/launch/srun.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "perfmodel/base/error.h"

namespace commtune::api {
namespace {

/// Of every host; throws when they differ.
int slots_of_each(const HostList& list) {
  const int slots = list.hosts.front().slots;
  for (const Host& host : list.hosts)
    if (host.slots != slots)
      throw Error(
          ErrorCode::kBadInput,
          fmt::format("hosts {} and {} have {} and {} slots: srun starts as many ranks on each host; give "
                      "them the same slots=, or use mpirun",
                      list.hosts.front().name, host.name, slots, host.slots));
  return slots;
}

}  // namespace

bool is_srun(const std::string& program) { return std::filesystem::path(program).filename() == "srun"; }

std::vector<std::string> srun_command(const MpirunOptions& options) {
  const int slots = known_ranks(options.hosts);
  const int ranks = ranks_to_start(options);
  std::vector<std::string> argv{options.program, "--mpi=pmix",         "--input=0",
                                "--overlap",     "--kill-on-bad-exit", "--distribution=block"};
  if (ranks > 0) argv.push_back(fmt::format("--ntasks={}", ranks));
  if (!all_local(options.hosts)) {
    std::string names;
    int needed = 0;  // hosts until the ranks are placed
    const int each = std::max(1, slots_of_each(options.hosts));
    for (const Host& host : options.hosts.hosts) {
      if (ranks > 0 && needed * each >= ranks) break;
      names += (needed == 0 ? "" : ",") + host.name;
      ++needed;
    }
    argv.push_back(fmt::format("--nodes={}", needed));
    argv.push_back("--nodelist=" + names);
    if (slots > 0) argv.push_back(fmt::format("--ntasks-per-node={}", each));
  }
  argv.insert(argv.end(), options.extra.begin(), options.extra.end());
  argv.insert(argv.end(), options.rank_command.begin(), options.rank_command.end());
  return argv;
}

std::vector<std::string> launch_command(const MpirunOptions& options, const LaunchSite& site) {
  return is_srun(options.program) ? srun_command(options) : mpirun_command(options, site);
}

}  // namespace commtune::api
