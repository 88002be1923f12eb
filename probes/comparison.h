#pragma once
// Beside what people already trust: other tools' measurements of the same link, in the same run.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "executor/transport/transport.h"
#include "perfmodel/units.h"

namespace commtune::probes {

struct ComparisonOptions {
  Seconds duration{1.0};           ///< of each transfer
  int port = 5201;                 ///< that a server listens on, on the receiving host
  std::string program = "iperf3";  ///< by name or path, the same on every host
  void check() const;              ///< throws Error{kBadInput} naming field, value and rule
};

/// What a tool says about one direction of one link.
struct ToolResult {
  std::string tool;                   ///< "iperf3"
  int source = 0, destination = 0;    ///< ranks
  std::string from, to;               ///< their hosts
  double bytes_per_second = 0;        ///< payload that arrived; 0 when it could not be measured
  std::optional<Seconds> round_trip;  ///< the connection's mean round trip under load, if the tool says it
  std::string
      problem;  ///< why there is no result ("iperf3 does not start on host b: ..."); empty if there is
};

/// Collective: all ranks of the transport call it. Runs iperf3 between the first ranks of the first two
/// hosts, one direction after the other, nothing else being sent. The results are on rank 0; others get an
/// empty vector. RDMA tools are not run: where a host has RDMA devices, a result says so. Starts processes
/// (iperf3) and waits for them; none is left behind. throws Error{kTimeout} when a rank is silent
std::vector<ToolResult> compare_with_tools(Transport& transport, const ComparisonOptions& options = {});

/// {"tool": "iperf3", "source": 0, "destination": 1, "from": "a", "to": "b", "bytes_per_second": 1.2e8,
///  "round_trip_seconds": 5e-4, "problem": ""}; 0 where nothing was measured.
nlohmann::json to_json(const ToolResult& result);
/// Throws Error{kBadInput} naming the key, the value and the rule.
ToolResult tool_result_from_json(const nlohmann::json& json);

/// One run's output (`iperf3 --json`) as a result. Pure; a malformed text is a problem.
ToolResult read_iperf3(const std::string& text);

}  // namespace commtune::probes
