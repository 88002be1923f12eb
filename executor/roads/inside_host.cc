#include "executor/roads/inside_host.h"

#include <algorithm>

#include "executor/roads/steps.h"

namespace commtune {

int HostLayout::count() const {
  int hosts = 0;
  for (int rank = 0; rank < workers_; ++rank) hosts += is_first(rank) ? 1 : 0;
  return hosts;
}

int HostLayout::size_of(int node_number) const {
  int size = 0;
  for (int rank = 0; rank < workers_; ++rank) size += node(rank) == node_number ? 1 : 0;
  return size;
}

int HostLayout::smallest() const {
  int least = workers_;
  for (int rank = 0; rank < workers_; ++rank) least = std::min(least, size_of(node(rank)));
  return least;
}

int HostLayout::rank_of(int node_number, int local) const {
  for (int rank = 0; rank < workers_; ++rank) {
    if (node(rank) == node_number && local-- == 0) return rank;
  }
  return -1;
}

int HostLayout::local(int rank) const {
  int before = 0;
  for (int other = 0; other < rank; ++other) before += node(other) == node(rank) ? 1 : 0;
  return before;
}

Circle HostLayout::circle(int rank, int local_index) const {
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

HostPlace::HostPlace(const RoadMessage& message)
    : hosts(message.communicator.peers(), message.settings.workers),
      rank(message.communicator.rank()),
      node(hosts.node(rank)),
      in_host(hosts.size_of(node)),
      parts(hosts.smallest()),
      local(hosts.local(rank)),
      bytes(message.data.size()),
      element(element_size(message.settings.type).count),
      chunk_bytes(message.settings.chunk_for(bytes, parts)) {}

RoadMessage HostPlace::own_part(const RoadMessage& message) const {
  RoadMessage own = message;
  own.data = message.part(part(local));
  return own;
}

Task reduce_inside(RoadMessage message, HostPlace place, Tag tag) {
  Group sends;
  for (int l = 0; l < place.parts; ++l) {
    const int peer = place.hosts.rank_of(place.node, l);
    if (peer == place.rank) continue;
    start_send(message, {peer, tag, place.chunk_bytes}, place.part(l), sends);
  }
  for (int l = 0; place.owns() && l < place.in_host; ++l) {
    const int peer = place.hosts.rank_of(place.node, l);
    if (peer == place.rank) continue;
    co_await receive_and_add(message, {peer, tag, place.chunk_bytes}, place.part(place.local));
  }
  co_await sends.empty();
}

Task distribute_inside(RoadMessage message, HostPlace place, Tag tag) {
  Group sends;
  for (int l = 0; place.owns() && l < place.in_host; ++l) {
    const int peer = place.hosts.rank_of(place.node, l);
    if (peer == place.rank) continue;
    start_send(message, {peer, tag, place.chunk_bytes}, place.part(place.local), sends);
  }
  for (int l = 0; l < place.parts; ++l) {
    const int peer = place.hosts.rank_of(place.node, l);
    if (peer == place.rank) continue;
    co_await receive_in_place(message, {peer, tag, place.chunk_bytes}, place.part(l));
  }
  co_await sends.empty();
}

}  // namespace commtune
