#pragma once
// What roads do inside a host that carries several workers, where bytes go through memory: sum there before
// anything goes to other hosts, and hand the result around after it is back.
//
// With g workers on the host (where hosts differ, g is the smallest number), a message is cut into g parts.
// The local-th worker of every host owns part `local`: the others of its host send it theirs, it adds them in
// rank order, and it alone takes the part to other hosts. A worker whose host has more than g owns nothing.

#include "executor/roads/ring.h"
#include "executor/roads/road.h"

namespace commtune {

/// Which workers share which host. Walks the list of ranks whenever asked, so that it needs no memory.
class HostLayout {
 public:
  HostLayout(const Peers& peers, int workers) : peers_(peers), workers_(workers) {}

  int count() const;
  int node(int rank) const { return peers_.node[static_cast<std::size_t>(rank)]; }
  /// Number of workers on a host, and on the host with the fewest.
  int size_of(int node_number) const;
  int smallest() const;
  /// The local-th worker of a host; -1 when it has fewer.
  int rank_of(int node_number, int local) const;
  /// Number of workers of the same host before this one.
  int local(int rank) const;
  /// The ring of every host's local-th worker, seen from `rank`, which is one.
  Circle circle(int rank, int local_index) const;

 private:
  /// Whether a rank is the first of its host.
  bool is_first(int rank) const { return local(rank) == 0; }

  const Peers& peers_;
  const int workers_;
};

/// This rank's place and its part of one message.
struct HostPlace {
  explicit HostPlace(const RoadMessage& message);

  bool owns() const { return local < parts; }
  Range part(int index) const { return segment(bytes, element, parts, index); }
  RoadMessage own_part(const RoadMessage& message) const;
  Circle circle() const { return hosts.circle(rank, local); }

  HostLayout hosts;
  int rank, node, in_host, parts, local;
  std::size_t bytes, element, chunk_bytes;
};

/// Part l of every worker of the host to its l-th, which adds them in rank order.
/// tag  of a stream that nothing else of this message uses between workers of a host
Task reduce_inside(RoadMessage message, HostPlace place, Tag tag);

/// The owners' parts to everybody else of the host.
Task distribute_inside(RoadMessage message, HostPlace place, Tag tag);

}  // namespace commtune
