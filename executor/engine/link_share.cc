#include "executor/engine/link_share.h"

#include <algorithm>
#include <cstdint>
#include <variant>

#include "executor/roads/parameter_server/parameter_server.h"
#include "executor/roads/parameter_server/pushers.h"
#include "perfmodel/base/overloaded.h"

namespace commtune {
namespace {

/// Bytes between ranks of different hosts, in slices: what a pusher of a part sends one server, and gets
/// back.
class Slices {
 public:
  Slices(const ParameterServer& road, const HostLayout& hosts)
      : road_(road),
        hosts_(hosts),
        pushers_(road, hosts),
        here_(static_cast<std::size_t>(hosts.all_hosts())) {
    for (int part = 0; part < pushers_.parts(); ++part) {
      for (const int worker : pushers_.of(part)) ++on_host_of(worker).pushers;
      all_pushers_ += static_cast<std::int64_t>(pushers_.of(part).size());
    }
    for (int server = 0; server < road.servers; ++server) {
      ++on_host_of(server_rank(road, hosts.workers(), server)).servers;
    }
  }

  /// A push, an answer, or one of each.
  int between(int from, int to) const {
    if (hosts_.host_of(from) == hosts_.host_of(to)) return 0;
    return (pushes(from) && serves(to) ? 1 : 0) + (serves(from) && pushes(to) ? 1 : 0);
  }

  /// As many as leave a rank's host reach it: each push has its answer.
  std::int64_t through_card_of(int rank) const {
    const Ends& here = here_[static_cast<std::size_t>(hosts_.host_of(rank))];
    return here.pushers * (road_.servers - here.servers) + here.servers * (all_pushers_ - here.pushers);
  }

 private:
  /// What a host carries.
  struct Ends {
    std::int64_t pushers = 0, servers = 0;
  };
  Ends& on_host_of(int rank) { return here_[static_cast<std::size_t>(hosts_.host_of(rank))]; }
  bool pushes(int rank) const { return rank < hosts_.workers() && pushers_.part_of(rank) >= 0; }
  bool serves(int rank) const { return server_of(road_, hosts_.workers(), rank) >= 0; }

  const ParameterServer& road_;
  const HostLayout& hosts_;
  const Pushers pushers_;
  std::vector<Ends> here_;  // by host
  std::int64_t all_pushers_ = 0;
};

std::vector<double> equal_shares(const HostLayout& hosts) {
  return std::vector<double>(static_cast<std::size_t>(hosts.ranks()), 1.0);
}

std::vector<double> server_shares(const ParameterServer& road, const HostLayout& hosts, int rank) {
  std::vector<double> shares = equal_shares(hosts);
  const Slices slices(road, hosts);
  for (int peer = 0; peer < hosts.ranks(); ++peer) {
    const int flow = slices.between(rank, peer);
    if (flow == 0) continue;
    const std::int64_t busier = std::max(slices.through_card_of(rank), slices.through_card_of(peer));
    shares[static_cast<std::size_t>(peer)] = static_cast<double>(flow) / static_cast<double>(busier);
  }
  return shares;
}

}  // namespace

std::vector<double> link_shares(const Road& road, const HostLayout& hosts, int rank) {
  return match(
      road, [&](const AllReduce&) { return equal_shares(hosts); },
      [&](const ParameterServer& servers) { return server_shares(servers, hosts, rank); });
}

}  // namespace commtune
