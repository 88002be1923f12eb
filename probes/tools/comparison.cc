#include "probes/tools/comparison.h"

#include <arpa/inet.h>
#include <net/if.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "executor/transport/communicator.h"
#include "perfmodel/base/error.h"
#include "probes/analysis/links.h"
#include "probes/host/interfaces.h"
#include "probes/tools/child_process.h"

namespace commtune::probes {

namespace {

constexpr Tag kTextTag = make_tag(TagSpace::kControl, 110);  // see protocol/command.h
constexpr std::size_t kMostText = 256 << 10;  // bytes of a tool's report; iperf3's JSON has some 10 KB
constexpr Seconds kSlack{5};  // for starting, connecting and ending, beside the transfer itself

/// An address of this host and the network that it belongs to, IPv4 in host order.
struct Address {
  std::uint32_t address = 0, mask = 0;
  std::string text() const {
    const in_addr network{htonl(address)};
    char buffer[INET_ADDRSTRLEN];
    return inet_ntop(AF_INET, &network, buffer, sizeof buffer);
  }
};

std::uint32_t value_of(const sockaddr* address) {
  return ntohl(reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr);
}

std::vector<Address> own_addresses() {
  std::vector<Address> result;
  const Interfaces interfaces = list_interfaces();
  for (const ifaddrs* entry = interfaces.get(); entry != nullptr; entry = entry->ifa_next) {
    const bool internet =
        entry->ifa_addr != nullptr && entry->ifa_addr->sa_family == AF_INET && entry->ifa_netmask != nullptr;
    if (internet && (entry->ifa_flags & IFF_UP) != 0 && (entry->ifa_flags & IFF_LOOPBACK) == 0) {
      result.push_back({value_of(entry->ifa_addr), value_of(entry->ifa_netmask)});
    }
  }
  return result;
}

std::optional<std::uint32_t> parse_address(const std::string& text) {
  in_addr address{};
  if (inet_pton(AF_INET, text.c_str(), &address) != 1) return std::nullopt;
  return ntohl(address.s_addr);
}

/// The peer's address that lies in a network of this host; its first one if none does.
std::string reachable(const std::vector<std::string>& peer) {
  const std::vector<Address> own = own_addresses();
  for (const std::string& text : peer) {
    const auto there = parse_address(text);
    const bool shared = there && std::any_of(own.begin(), own.end(), [&](const Address& here) {
                          return (here.address & here.mask) == (*there & here.mask);
                        });
    if (shared) return text;
  }
  return peer.empty() ? std::string() : peer.front();
}

Task send_text(Communicator& communicator, int to, const std::string& text) {
  co_await communicator.send(to, kTextTag, std::as_bytes(std::span(text)));
}

Task receive_text(Communicator& communicator, int from, std::string& text) {
  text.resize(kMostText);
  const Completion completion = co_await communicator.receive(
      from, kTextTag, std::as_writable_bytes(std::span(text.data(), text.size())));
  text.resize(completion.bytes);
}

/// What the two ends of one direction say to each other, and what they run.
class Ends {
 public:
  Ends(Communicator& communicator, const ComparisonOptions& options)
      : communicator_(communicator), options_(options) {}

  /// Listens, tells the sender where, and waits until it is done.
  void serve(const PeerTool& tool, int sender) {
    std::unique_ptr<ChildProcess> server;
    nlohmann::json greeting{{"addresses", nlohmann::json::array()}};
    for (const Address& address : own_addresses()) greeting["addresses"].push_back(address.text());
    try {
      server = std::make_unique<ChildProcess>(tool.server);
    } catch (const Error& error) {
      greeting["problem"] = does_not_start(tool, error);
    }
    say(sender, greeting.dump());
    hear(sender);
  }

  /// Sends to the other end's server, retrying until it listens.
  ToolResult transfer(const PeerTool& tool, int receiver) {
    const nlohmann::json greeting = nlohmann::json::parse(hear(receiver));
    ToolResult result =
        greeting.contains("problem")
            ? problem_of(tool.name, greeting["problem"].get<std::string>())
            : try_transfer(tool, reachable(greeting["addresses"].get<std::vector<std::string>>()));
    say(receiver, "done");
    return result;
  }

  void say(int to, const std::string& text) {
    communicator_.run(send_text(communicator_, to, text), deadline());
  }

  /// transfers  that end before it is said
  std::string hear(int from, int transfers = 1) {
    std::string text;
    communicator_.run(receive_text(communicator_, from, text), deadline(transfers));
    return text;
  }

  const Peers& peers() const { return communicator_.peers(); }

 private:
  Deadline deadline(int transfers = 1) const {
    const Seconds each = options_.duration + 3 * kSlack;
    return Clock::now() + std::chrono::duration_cast<Clock::duration>(transfers * each);
  }

  std::string does_not_start(const PeerTool& tool, const Error& error) const {
    return "it does not start on host " + peers().hosts[static_cast<std::size_t>(peers().rank)] + " (" +
           error.what() + "); Debian has it as package " + tool.package;
  }

  ToolResult try_transfer(const PeerTool& tool, const std::string& address) {
    // The server needs some tens of milliseconds until it listens; a second is given.
    constexpr int kTries = 10;
    constexpr std::chrono::milliseconds kPause{100};
    std::vector<std::string> command = tool.client;
    command.push_back(address);
    ToolResult result = problem_of(tool.name, "the receiving host has no address");
    for (int i = 0; i < kTries && !address.empty(); ++i) {
      try {
        ChildProcess client(command);
        const std::optional<std::string> output = client.wait(
            Clock::now() + std::chrono::duration_cast<Clock::duration>(options_.duration + kSlack));
        if (!output) return problem_of(tool.name, "it did not end in time");
        result = tool.read(*output);
      } catch (const Error& error) {
        return problem_of(tool.name, does_not_start(tool, error));
      }
      if (result.problem.empty()) return result;
      std::this_thread::sleep_for(kPause);
    }
    return result;
  }

  Communicator& communicator_;
  const ComparisonOptions& options_;
};

/// This rank's part of one direction; the result is on rank 0, which is one of the two ends.
ToolResult one_direction(Ends& ends, const PeerTool& tool, int source, int destination) {
  const Peers& peers = ends.peers();
  const int other = source == 0 ? destination : source;
  ToolResult result;
  if (peers.rank == destination) ends.serve(tool, source);
  if (peers.rank == source) {
    result = ends.transfer(tool, destination);
    if (peers.rank != 0) ends.say(0, to_json(result).dump());
  }
  if (peers.rank == 0 && source != 0) {
    result = tool_result_from_json(nlohmann::json::parse(ends.hear(other)));
  }
  result.source = source;
  result.destination = destination;
  result.from = peers.hosts[static_cast<std::size_t>(source)];
  result.to = peers.hosts[static_cast<std::size_t>(destination)];
  return result;
}

void both_directions(Ends& ends, const PeerTool& tool, int other, std::vector<ToolResult>& results) {
  results.push_back(one_direction(ends, tool, 0, other));
  results.push_back(one_direction(ends, tool, other, 0));
}

/// Nothing where neither host has a device.
void compare_rdma(Ends& ends, const ComparisonOptions& options, const std::string& own, int other,
                  std::vector<ToolResult>& results) {
  const int rank = ends.peers().rank;
  const int peer = rank == 0 ? other : 0;
  std::string theirs;
  if (rank == 0) theirs = ends.hear(peer);
  ends.say(peer, own);
  if (rank != 0) theirs = ends.hear(peer);
  if (own.empty() && theirs.empty()) return;
  const PeerTool tool = ib_write_bw(options.rdma_program, own, options.port, options.duration);
  if (!own.empty() && !theirs.empty()) {
    both_directions(ends, tool, other, results);
    both_directions(ends, ib_write_lat(options.latency_program, own, options.port, options.duration), other,
                    results);
    return;
  }
  const std::string& without = ends.peers().hosts[static_cast<std::size_t>(own.empty() ? rank : peer)];
  results.push_back(problem_of(tool.name, "host " + without + " has no RDMA device with an active port"));
}

/// The ranks that neither send nor serve wait here: what follows expects nobody to be late.
void end_together(Ends& ends, int other) {
  // Three tools, both ways each: the time limit of whoever waits for all of them.
  constexpr int kMostTransfers = 6;
  const Peers& peers = ends.peers();
  if (peers.rank != 0) {
    if (peers.rank != other) ends.hear(0, kMostTransfers);
    return;
  }
  for (int rank = 1; rank < peers.size(); ++rank) {
    if (rank != other) ends.say(rank, "done");
  }
}

}  // namespace

void ComparisonOptions::check() const {
  if (duration < Seconds{1} || duration > Seconds{60}) {
    throw Error(ErrorCode::kBadInput,
                "comparison duration = " + format_time(duration) + ": must be 1 s to 60 s");
  }
  if (port < 1 || port > 65535) {
    throw Error(ErrorCode::kBadInput, "comparison port = " + std::to_string(port) + ": must be 1 to 65535");
  }
}

std::vector<ToolResult> compare_with_tools(Transport& transport, const ComparisonOptions& options) {
  options.check();
  const Peers& peers = transport.peers();
  const std::vector<int> host = host_of_rank(peers.hosts);
  const auto second = std::find(host.begin(), host.end(), 1);
  std::vector<ToolResult> results;
  if (second == host.end()) {
    results.push_back(problem_of("iperf3", "there is one host only"));
  } else {
    const auto other = static_cast<int>(second - host.begin());
    Communicator communicator(transport);
    Ends ends(communicator, options);
    if (peers.rank == 0 || peers.rank == other) {
      both_directions(ends, iperf3(options.program, options.port, options.duration), other, results);
      auto device = rdma_device_of(transport.facts());
      if (!device) device = active_rdma_device(options.rdma_devices);
      compare_rdma(ends, options, device.value_or(""), other, results);
    }
    end_together(ends, other);
  }
  return peers.rank == 0 ? results : std::vector<ToolResult>{};
}

}  // namespace commtune::probes
