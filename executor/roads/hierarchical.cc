#include "executor/roads/hierarchical.h"

#include <algorithm>

#include "executor/roads/ring.h"
#include "executor/roads/steps.h"

namespace commtune {
namespace {

/// Which workers share which host. Walks the list of ranks whenever asked, so that it needs no memory.
class Hosts {
 public:
  Hosts(const Peers& peers, int workers) : peers_(peers), workers_(workers) {}

  int count() const {
    int hosts = 0;
    for (int rank = 0; rank < workers_; ++rank) hosts += is_first(rank) ? 1 : 0;
    return hosts;
  }
  int node(int rank) const { return peers_.node[static_cast<std::size_t>(rank)]; }
  /// Number of workers on this rank's host.
  int size_of(int node_number) const {
    int size = 0;
    for (int rank = 0; rank < workers_; ++rank) size += node(rank) == node_number ? 1 : 0;
    return size;
  }
  int smallest() const {
    int least = workers_;
    for (int rank = 0; rank < workers_; ++rank) least = std::min(least, size_of(node(rank)));
    return least;
  }
  /// The local-th worker of a host.
  int rank_of(int node_number, int local) const {
    for (int rank = 0; rank < workers_; ++rank) {
      if (node(rank) == node_number && local-- == 0) return rank;
    }
    return -1;
  }
  int local(int rank) const {
    int before = 0;
    for (int other = 0; other < rank; ++other) before += node(other) == node(rank) ? 1 : 0;
    return before;
  }
  /// The ring of every host's local-th worker, seen from `rank`, which is one.
  Circle circle(int rank, int local_index) const {
    Circle circle{count(), 0, rank, rank};
    int first = -1;
    int last = -1;
    int previous = -1;
    int next = -1;
    int position = 0;
    for (int host_first = 0; host_first < workers_; ++host_first) {
      if (!is_first(host_first)) continue;
      const int member = rank_of(node(host_first), local_index);
      if (member == rank) {
        circle.own = position;
        previous = last;
      } else if (last == rank) {
        next = member;
      }
      if (first < 0) first = member;
      last = member;
      ++position;
    }
    circle.left = previous >= 0 ? previous : last;
    circle.right = next >= 0 ? next : first;
    return circle;
  }

 private:
  /// Whether a rank is the first of its host.
  bool is_first(int rank) const { return local(rank) == 0; }

  const Peers& peers_;
  const int workers_;
};

/// This rank's place and its part of one message.
struct Place {
  explicit Place(const RoadMessage& message)
      : hosts(message.communicator.peers(), message.settings.workers),
        rank(message.communicator.rank()),
        node(hosts.node(rank)),
        in_host(hosts.size_of(node)),
        parts(hosts.smallest()),
        local(hosts.local(rank)),
        bytes(message.data.size()),
        element(element_size(message.settings.type).count),
        chunk_bytes(message.settings.chunk_for(bytes, parts)) {}

  bool owns() const { return local < parts; }
  Range part(int index) const { return segment(bytes, element, parts, index); }
  RoadMessage own_part(const RoadMessage& message) const {
    RoadMessage own = message;
    own.data = message.part(part(local));
    return own;
  }
  Circle circle() const { return hosts.circle(rank, local); }
  Stream stream(int peer, Channel channel, std::uint32_t number) const {
    return {peer, lane_tag(channel, number, 1), chunk_bytes};
  }

  Hosts hosts;
  int rank, node, in_host, parts, local;
  std::size_t bytes, element, chunk_bytes;
};

/// Part l of every worker of the host to its l-th, which adds them in rank order.
Task reduce_inside(RoadMessage message, Place place) {
  Group sends;
  for (int l = 0; l < place.parts; ++l) {
    const int peer = place.hosts.rank_of(place.node, l);
    if (peer == place.rank) continue;
    start_send(message, place.stream(peer, Channel::kReduce, message.number), place.part(l), sends);
  }
  for (int l = 0; place.owns() && l < place.in_host; ++l) {
    const int peer = place.hosts.rank_of(place.node, l);
    if (peer == place.rank) continue;
    co_await receive_and_add(message, place.stream(peer, Channel::kReduce, message.number),
                             place.part(place.local));
  }
  co_await sends.empty();
}

Task distribute_inside(RoadMessage message, Place place) {
  Group sends;
  for (int l = 0; place.owns() && l < place.in_host; ++l) {
    const int peer = place.hosts.rank_of(place.node, l);
    if (peer == place.rank) continue;
    start_send(message, place.stream(peer, Channel::kDistribute, message.number), place.part(place.local),
               sends);
  }
  for (int l = 0; l < place.parts; ++l) {
    const int peer = place.hosts.rank_of(place.node, l);
    if (peer == place.rank) continue;
    co_await receive_in_place(message, place.stream(peer, Channel::kDistribute, message.number),
                              place.part(l));
  }
  co_await sends.empty();
}

}  // namespace

Task hierarchical_reduce_scatter(RoadMessage message) {
  const Place place(message);
  co_await reduce_inside(message, place);
  if (place.owns()) co_await ring_reduce_scatter(place.own_part(message), place.circle());
  message.report(Stage::kReduce);
}

Task hierarchical_all_gather(RoadMessage message) {
  const Place place(message);
  if (place.owns()) co_await ring_all_gather(place.own_part(message), place.circle());
  co_await distribute_inside(message, place);
  message.report(Stage::kDistribute);
}

Task hierarchical_all_reduce(RoadMessage message) {
  const Place place(message);
  co_await reduce_inside(message, place);
  if (place.owns()) co_await ring_all_reduce(place.own_part(message), place.circle());
  co_await distribute_inside(message, place);
  message.report(Stage::kDistribute);
}

}  // namespace commtune
