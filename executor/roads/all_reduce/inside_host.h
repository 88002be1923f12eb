#pragma once
// What roads do inside a host that carries several workers, where bytes go through memory: sum there before
// anything goes to other hosts, and hand the result around after it is back.
//
// With g workers on the host (where hosts differ, g is the smallest number), a message is cut into g parts.
// The local-th worker of every host owns part `local`: the others of its host send it theirs, it adds them in
// rank order, and it alone takes the part to other hosts. A worker whose host has more than g owns nothing.

#include <span>

#include "executor/roads/all_reduce/ring.h"
#include "executor/roads/host_layout.h"
#include "executor/roads/road.h"

namespace commtune {

/// This rank's place and its part of one message. Found in O(1): it is asked for every message.
struct HostPlace {
  explicit HostPlace(const RoadMessage& message);

  bool owns() const { return local < parts; }
  Range part(int index) const { return segment(bytes, element, parts, index); }
  RoadMessage own_part(const RoadMessage& message) const;
  /// The ring of every host's worker that owns the same part.
  Circle circle() const;

  const HostLayout& hosts;
  int rank, host;
  std::span<const int> in_host;  ///< this host's workers
  int parts, local;
  std::size_t bytes, element, chunk_bytes;
};

/// Part l of every worker of the host to its l-th, which adds them in rank order.
/// tag  of a stream that nothing else of this message uses between workers of a host
Task reduce_inside(RoadMessage message, HostPlace place, Tag tag);

/// The owners' parts to everybody else of the host.
Task distribute_inside(RoadMessage message, HostPlace place, Tag tag);

/// Both halves of distribute_inside(): receives for all other parts, in place, and the sends of the own one.
void receive_parts(const RoadMessage& message, const HostPlace& place, Tag tag, Group& group);
void send_own_part(const RoadMessage& message, const HostPlace& place, Tag tag, Group& group);

}  // namespace commtune
