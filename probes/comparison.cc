#include "probes/comparison.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "executor/communicator.h"
#include "perfmodel/error.h"
#include "perfmodel/json_reader.h"
#include "probes/child_process.h"
#include "probes/links.h"

namespace commtune::probes {

namespace {

constexpr Tag kTextTag = make_tag(Channel::kControl, 110);
constexpr std::size_t kMostText = 256 << 10;
constexpr Seconds kSlack{5};  // for starting, connecting and ending, beside the transfer itself

struct FreeInterfaces {
  void operator()(ifaddrs* list) const noexcept { freeifaddrs(list); }
};

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
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return result;
  const std::unique_ptr<ifaddrs, FreeInterfaces> list(first);
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
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

bool has_rdma_device() {
  std::error_code ignored;
  const std::filesystem::directory_iterator devices("/sys/class/infiniband", ignored);
  return !ignored && devices != std::filesystem::directory_iterator();
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

/// The two ends of one direction.
class Ends {
 public:
  Ends(Communicator& communicator, const ComparisonOptions& options)
      : communicator_(communicator), options_(options) {}

  /// Listens, tells the sender where, and waits until it is done.
  void serve(int sender) {
    std::unique_ptr<ChildProcess> server;
    nlohmann::json greeting{{"addresses", nlohmann::json::array()}};
    for (const Address& address : own_addresses()) greeting["addresses"].push_back(address.text());
    try {
      server = std::make_unique<ChildProcess>(std::vector<std::string>{
          options_.program, "--server", "--one-off", "--port", std::to_string(options_.port)});
    } catch (const Error& error) {
      greeting["problem"] = does_not_start(error);
    }
    say(sender, greeting.dump());
    hear(sender);
  }

  /// Sends to the other end's server, retrying until it listens. Returns iperf3's output, or a problem as
  /// JSON.
  std::string transfer(int receiver) {
    const nlohmann::json greeting = nlohmann::json::parse(hear(receiver));
    std::string output;
    if (greeting.contains("problem")) {
      output = problem(greeting["problem"].get<std::string>());
    } else {
      output = try_transfer(reachable(greeting["addresses"].get<std::vector<std::string>>()));
    }
    say(receiver, "done");
    return output;
  }

  void say(int to, const std::string& text) {
    communicator_.run(send_text(communicator_, to, text), deadline());
  }

  std::string hear(int from) {
    std::string text;
    communicator_.run(receive_text(communicator_, from, text), deadline());
    return text;
  }

 private:
  Deadline deadline() const {
    return Clock::now() + std::chrono::duration_cast<Clock::duration>(options_.duration + 3 * kSlack);
  }

  std::string does_not_start(const Error& error) const {
    const Peers& peers = communicator_.peers();
    return "it does not start on host " + peers.hosts[static_cast<std::size_t>(peers.rank)] + " (" +
           error.what() + "); Debian has it as package iperf3";
  }

  static std::string problem(const std::string& text) { return nlohmann::json{{"error", text}}.dump(); }

  std::string try_transfer(const std::string& address) {
    constexpr int kTries = 10;
    constexpr std::chrono::milliseconds kPause{100};
    std::string output = problem("the receiving host has no address");
    for (int i = 0; i < kTries && !address.empty(); ++i) {
      try {
        ChildProcess client({options_.program, "--client", address, "--port", std::to_string(options_.port),
                             "--time", std::to_string(std::max(1L, std::lround(options_.duration.count()))),
                             "--json"});
        output =
            client
                .wait(Clock::now() + std::chrono::duration_cast<Clock::duration>(options_.duration + kSlack))
                .value_or(problem("it did not end in time"));
      } catch (const Error& error) {
        return problem(does_not_start(error));
      }
      if (read_iperf3(output).problem.empty()) return output;
      std::this_thread::sleep_for(kPause);
    }
    return output;
  }

  Communicator& communicator_;
  const ComparisonOptions& options_;
};

/// This rank's part of one direction; the result is on rank 0, which is one of the two ends.
ToolResult one_direction(Ends& ends, const Peers& peers, int source, int destination) {
  const int rank = peers.rank;
  const int other = source == 0 ? destination : source;
  ToolResult result;
  if (rank == destination) ends.serve(source);
  if (rank == source) {
    const std::string output = ends.transfer(destination);
    if (rank == 0) {
      result = read_iperf3(output);
    } else {
      ends.say(0, output);
    }
  }
  if (rank == 0 && source != 0) result = read_iperf3(ends.hear(other));
  result.source = source;
  result.destination = destination;
  result.from = peers.hosts[static_cast<std::size_t>(source)];
  result.to = peers.hosts[static_cast<std::size_t>(destination)];
  return result;
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

ToolResult read_iperf3(const std::string& text) {
  ToolResult result;
  result.tool = "iperf3";
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) {
    result.problem = "its output is no JSON";
    return result;
  }
  if (json.contains("error")) {
    result.problem = json["error"].is_string() ? json["error"].get<std::string>() : "unknown";
    return result;
  }
  const nlohmann::json rate = json.value("/end/sum_received/bits_per_second"_json_pointer, nlohmann::json());
  if (!rate.is_number() || rate.get<double>() <= 0) {
    result.problem = "its output has no end.sum_received.bits_per_second";
    return result;
  }
  result.bytes_per_second = rate.get<double>() / 8;
  const nlohmann::json trip = json.value("/end/streams/0/sender/mean_rtt"_json_pointer, nlohmann::json());
  if (trip.is_number() && trip.get<double>() > 0) result.round_trip = Seconds{trip.get<double>() * 1e-6};
  return result;
}

nlohmann::json to_json(const ToolResult& result) {
  return {{"tool", result.tool},
          {"source", result.source},
          {"destination", result.destination},
          {"from", result.from},
          {"to", result.to},
          {"bytes_per_second", result.bytes_per_second},
          {"round_trip_seconds", result.round_trip.value_or(Seconds{0}).count()},
          {"problem", result.problem}};
}

ToolResult tool_result_from_json(const nlohmann::json& json) {
  constexpr int kMostRanks = 1'000'000;
  constexpr double kMostRate = 1e15, kLongest = 1e6;
  const JsonPlace place(json);
  ToolResult result;
  result.tool = place["tool"].name();
  result.source = static_cast<int>(place["source"].signed_integer(0, kMostRanks));
  result.destination = static_cast<int>(place["destination"].signed_integer(0, kMostRanks));
  result.from = place["from"].text();
  result.to = place["to"].text();
  result.bytes_per_second = place["bytes_per_second"].number(0, kMostRate);
  const double trip = place["round_trip_seconds"].number(0, kLongest);
  if (trip > 0) result.round_trip = Seconds{trip};
  result.problem = place["problem"].text();
  return result;
}

std::vector<ToolResult> compare_with_tools(Transport& transport, const ComparisonOptions& options) {
  options.check();
  const Peers& peers = transport.peers();
  const std::vector<int> host = host_of_rank(peers.hosts);
  const auto second = std::find(host.begin(), host.end(), 1);
  std::vector<ToolResult> results;
  if (second == host.end()) {
    ToolResult none;
    none.tool = "iperf3";
    none.problem = "there is one host only";
    results.push_back(none);
  } else {
    const auto other = static_cast<int>(second - host.begin());
    Communicator communicator(transport);
    Ends ends(communicator, options);
    results.push_back(one_direction(ends, peers, 0, other));
    results.push_back(one_direction(ends, peers, other, 0));
  }
  if (has_rdma_device()) {
    ToolResult rdma;
    rdma.tool = "perftest";
    rdma.problem = "not run: this version compares TCP only";
    results.push_back(rdma);
  }
  return peers.rank == 0 ? results : std::vector<ToolResult>{};
}

}  // namespace commtune::probes
