#pragma once
// Beside what people already trust: other tools' measurements of the same link, in the same run.

#include <string>
#include <vector>

#include "executor/transport/transport.h"
#include "perfmodel/base/units.h"
#include "probes/tools/peer_tool.h"

namespace commtune::probes {

struct ComparisonOptions {
  Seconds duration{1.0};                               ///< of each transfer
  int port = 5201;                                     ///< that a server listens on, on the receiving host
  std::string program = "iperf3";                      ///< by name or path, the same on every host
  std::string rdma_program = "ib_write_bw";            ///< likewise
  std::string latency_program = "ib_write_lat";        ///< likewise
  std::string rdma_devices = "/sys/class/infiniband";  ///< the kernel's folder of them
  void check() const;  ///< throws Error{kBadInput} naming field, value and rule
};

/// Collective: all ranks of the transport call it. Runs iperf3 between the first ranks of the first two
/// hosts, one direction after the other, nothing else being sent; where one of the two hosts has an active
/// RDMA device, perftest's ib_write_bw and ib_write_lat as well: on the transport's own device where it has
/// one (otherwise their counterpart is what the probe finds when Open MPI uses these devices). The results
/// are on rank 0; others get an empty vector. Starts processes and waits for them; none is left behind.
/// throws Error{kTimeout} when a rank is silent
std::vector<ToolResult> compare_with_tools(Transport& transport, const ComparisonOptions& options = {});

}  // namespace commtune::probes
