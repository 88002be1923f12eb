#pragma once
// Programs that people already trust to measure a link, and how to read what they print.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "executor/transport/transport.h"
#include "perfmodel/base/units.h"

namespace commtune::probes {

/// What a tool says about one direction of one link.
struct ToolResult {
  std::string tool;                   ///< "iperf3", "ib_write_bw", "ib_write_lat"
  int source = 0, destination = 0;    ///< ranks
  std::string from, to;               ///< their hosts
  double bytes_per_second = 0;        ///< payload that arrived; 0 where it was not, or could not be, measured
  std::optional<Seconds> round_trip;  ///< mean; under load where the tool measures the rate as well
  /// Why there is no result ("iperf3 does not start on host b: ..."); empty if there is one.
  std::string problem;
};

/// Without a measurement: why.
ToolResult problem_of(const std::string& tool, const std::string& text);

/// {"tool": "iperf3", "source": 0, "destination": 1, "from": "a", "to": "b", "bytes_per_second": 1.2e8,
///  "round_trip_seconds": 5e-4, "problem": ""}; 0 where nothing was measured.
nlohmann::json to_json(const ToolResult& result);
/// Throws Error{kBadInput} naming the key, the value and the rule.
ToolResult tool_result_from_json(const nlohmann::json& json);

/// How a tool measures: a server on the receiving host serves one client, which sends and prints the result.
struct PeerTool {
  std::string name;                 ///< as results call it
  std::string package;              ///< Debian's
  std::vector<std::string> server;  ///< program and arguments
  std::vector<std::string> client;  ///< the same, up to the server's address, which comes last
  ToolResult (*read)(const std::string& text) = nullptr;  ///< of what the client printed
};

/// iperf3 --json over TCP: Debian's package of that name.
PeerTool iperf3(const std::string& program, int port, Seconds duration);
/// perftest's RDMA write of 64 KiB, as many under way as it likes, from one device.
PeerTool ib_write_bw(const std::string& program, const std::string& device, int port, Seconds duration);
/// perftest's RDMA writes of 8 B to and fro, one at a time.
PeerTool ib_write_lat(const std::string& program, const std::string& device, int port, Seconds duration);

/// A client's output as a result without ranks and hosts. Pure; a malformed text is a problem.
ToolResult read_iperf3(const std::string& text);
ToolResult read_ib_write_bw(const std::string& text);
ToolResult read_ib_write_lat(const std::string& text);

/// The first RDMA device, by name, with a port that is active; nullopt where there is none.
/// folder  "/sys/class/infiniband", which the kernel keeps
std::optional<std::string> active_rdma_device(const std::string& folder = "/sys/class/infiniband");
/// The one that a transport has, "mlx5_0" where its facts tell of a "card_mlx5_0_1"; nullopt where they tell
/// of none.
std::optional<std::string> rdma_device_of(const EndFacts& facts);

}  // namespace commtune::probes
