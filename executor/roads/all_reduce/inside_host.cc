#include "executor/roads/all_reduce/inside_host.h"

#include "executor/roads/steps.h"

namespace commtune {

HostPlace::HostPlace(const RoadMessage& message)
    : hosts(message.hosts),
      rank(message.communicator.rank()),
      host(hosts.host_of(rank)),
      in_host(hosts.workers_of(host)),
      parts(hosts.smallest()),
      local(hosts.local(rank)),
      bytes(message.data.bytes),
      element(element_size(message.settings.type).count),
      chunk_bytes(message.settings.chunk_for(bytes, parts)) {}

RoadMessage HostPlace::own_part(const RoadMessage& message) const {
  RoadMessage own = message;
  own.data = message.part(part(local));
  return own;
}

Circle HostPlace::circle() const {
  const int count = hosts.worker_hosts();
  const auto on = [&](int which) { return hosts.workers_of(which % count)[static_cast<std::size_t>(local)]; };
  return {count, host, on(host + count - 1), on(host + 1)};
}

Task reduce_inside(RoadMessage message, HostPlace place, Tag tag) {
  Group sends;
  for (int l = 0; l < place.parts; ++l) {
    const int peer = place.in_host[static_cast<std::size_t>(l)];
    if (peer == place.rank) continue;
    start_send(message, {peer, tag, place.chunk_bytes}, place.part(l), sends);
  }
  if (place.owns()) {
    for (const int peer : place.in_host) {
      if (peer == place.rank) continue;
      co_await receive_and_add(message, {peer, tag, place.chunk_bytes}, place.part(place.local));
    }
  }
  co_await sends.empty();
}

void receive_parts(const RoadMessage& message, const HostPlace& place, Tag tag, Group& group) {
  for (int l = 0; l < place.parts; ++l) {
    const int peer = place.in_host[static_cast<std::size_t>(l)];
    if (peer == place.rank) continue;
    const Range range = place.part(l);
    for (std::size_t i = 0; i < chunks(range.length, place.chunk_bytes); ++i) {
      message.communicator.receive(peer, tag, message.part(chunk(range, place.chunk_bytes, i)), group);
    }
  }
}

void send_own_part(const RoadMessage& message, const HostPlace& place, Tag tag, Group& group) {
  if (!place.owns()) return;
  for (const int peer : place.in_host) {
    if (peer == place.rank) continue;
    start_send(message, {peer, tag, place.chunk_bytes}, place.part(place.local), group);
  }
}

Task distribute_inside(RoadMessage message, HostPlace place, Tag tag) {
  Group sends;
  Group parts;
  send_own_part(message, place, tag, sends);
  receive_parts(message, place, tag, parts);
  co_await parts.empty();
  co_await sends.empty();
}

}  // namespace commtune
