#include "executor/link_share.h"

#include <algorithm>
#include <variant>

#include "executor/roads/parameter_server.h"
#include "executor/roads/pushers.h"

namespace commtune {
namespace {

/// Bytes between ranks of different hosts, as parts of a message.
class Traffic {
 public:
  Traffic(const ParameterServer& road, int workers, const Peers& peers)
      : peers_(peers), size_(peers.hosts.size()), between_(size_ * size_, 0.0) {
    const Pushers pushers(road, peers, workers);
    const double slice = 1.0 / road.servers / pushers.parts();
    for (int server = 0; server < road.servers; ++server) {
      const int at = server_rank(road, workers, server);
      for (int part = 0; part < pushers.parts(); ++part) {
        for (const int worker : pushers.of(part)) {
          add(worker, at, slice);
          add(at, worker, slice);
        }
      }
    }
  }

  double between(int from, int to) const { return between_[index(from, to)]; }
  double leaving_host_of(int rank) const {
    return sum([&](int from, int) { return node(from) == node(rank); });
  }
  double reaching_host_of(int rank) const {
    return sum([&](int, int to) { return node(to) == node(rank); });
  }

 private:
  std::size_t index(int from, int to) const {
    return static_cast<std::size_t>(from) * size_ + static_cast<std::size_t>(to);
  }
  int node(int rank) const { return peers_.node[static_cast<std::size_t>(rank)]; }
  void add(int from, int to, double part) {
    if (node(from) != node(to)) between_[index(from, to)] += part;
  }
  template <typename Counts>
  double sum(const Counts& counts) const {
    double total = 0;
    for (int from = 0; from < peers_.size(); ++from) {
      for (int to = 0; to < peers_.size(); ++to) {
        if (counts(from, to)) total += between(from, to);
      }
    }
    return total;
  }

  const Peers& peers_;
  const std::size_t size_;
  std::vector<double> between_;
};

}  // namespace

std::vector<double> link_shares(const Road& road, int workers, const Peers& peers) {
  std::vector<double> shares(peers.hosts.size(), 1.0);
  const auto* servers = std::get_if<ParameterServer>(&road);
  if (servers == nullptr) return shares;
  const Traffic traffic(*servers, workers, peers);
  const double leaving = traffic.leaving_host_of(peers.rank);
  for (int peer = 0; peer < peers.size(); ++peer) {
    const double flow = traffic.between(peers.rank, peer);
    if (flow > 0) {
      shares[static_cast<std::size_t>(peer)] = flow / std::max(leaving, traffic.reaching_host_of(peer));
    }
  }
  return shares;
}

}  // namespace commtune
