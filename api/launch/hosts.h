#pragma once
// The hosts of a job as its user names them: an Open MPI hostfile, a list as for `mpirun -H`, or a Slurm-like
// range in either.

#include <string>
#include <string_view>
#include <vector>

#include "perfmodel/cluster.h"

namespace commtune::api {

/// Hosts in the order in which ranks fill them.
struct HostList {
  std::vector<Host> hosts;         ///< slots 0: "as many ranks as that host has cores", known once it answers
  std::vector<std::string> notes;  ///< what was understood where the text leaves something open
  bool operator==(const HostList&) const = default;
};

/// Ranks on all hosts together; 0 when some host's slots are only known once it answers.
int known_ranks(const HostList& list);

/// Reads an Open MPI hostfile: a host a line, `node1 slots=4 max_slots=8`, `#` starts a comment, ranges as
/// `tux[0-3,12] slots=2` name several hosts. A host named twice gets the sum of its slots.
///
/// source  named in errors and notes: `hosts.txt:3: ...`
/// throws  Error{kBadInput} naming line, value and rule; also when there is no host at all
HostList parse_hostfile(std::string_view text, std::string_view source);

/// Reads `h1:4,h2:4` or `tux[0-3,12]:2`; a host without `:N` is one rank, as for `mpirun -H`. Errors as
/// above.
HostList parse_host_list(std::string_view text);

/// This machine alone with `ranks` ranks on it. Throws Error{kBadInput} unless ranks >= 1.
HostList local_hosts(int ranks);

/// The first `ranks` slots, host by host: where ranks are when there are no more of them. All of the list
/// where a host's slots are only known once it answers, or where it has fewer.
HostList first_ranks(HostList list, int ranks);

/// True when every host of the list is this machine.
bool all_local(const HostList& list);

/// "tux[0-3,12]" -> tux0 tux1 tux2 tux3 tux12; leading zeros are kept ("n[08-10]"). At most 65,536 hosts.
std::vector<std::string> expand_ranges(std::string_view pattern);

}  // namespace commtune::api
