#include "tests/cluster/fabric.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "tests/cluster/wire_size.h"

namespace commtune::cluster {

namespace {

constexpr std::array<std::uint8_t, 4> kMacPrefix = {0x02, 0xc7, 0x00, 0x00};

/// Port of the frame's destination address; none if it is not one of ours.
std::optional<std::size_t> destination_port(const Frame& frame, std::size_t ports) {
  const auto bytes = frame.bytes().subspan(kVnetHeaderBytes, 6);
  const bool ours = std::equal(kMacPrefix.begin(), kMacPrefix.end(), bytes.begin(),
                               [](std::uint8_t a, std::byte b) { return std::byte{a} == b; });
  const auto number = (std::to_integer<std::size_t>(bytes[4]) << 8) | std::to_integer<std::size_t>(bytes[5]);
  if (!ours || number == 0 || number > ports) return std::nullopt;
  return number - 1;
}

}  // namespace

std::array<std::uint8_t, 6> mac_address(std::size_t port) {
  const std::size_t number = port + 1;
  return {kMacPrefix[0],
          kMacPrefix[1],
          kMacPrefix[2],
          kMacPrefix[3],
          static_cast<std::uint8_t>(number >> 8),
          static_cast<std::uint8_t>(number & 0xff)};
}

Fabric::Fabric(Deliver deliver, std::size_t frames_in_flight)
    : deliver_(std::move(deliver)), pool_(frames_in_flight) {
  std::vector<Event> storage;
  storage.reserve(frames_in_flight);
  events_ = decltype(events_)(std::greater<>(), std::move(storage));
}

std::size_t Fabric::add_group(const TrunkSettings& settings) {
  groups_.push_back({settings, LinkClock(settings.bytes_per_second), LinkClock(settings.bytes_per_second)});
  return groups_.size() - 1;
}

std::size_t Fabric::add_port(const PortSettings& settings, std::size_t group) {
  assert(group < groups_.size());
  ports_.push_back({settings, group, LinkClock(settings.up_bytes_per_second),
                    LinkClock(settings.down_bytes_per_second), PortCounters{}});
  return ports_.size() - 1;
}

std::optional<Nanoseconds> Fabric::wait_to_read(std::size_t port, Nanoseconds now) const {
  const Nanoseconds busy_until = ports_[port].up.free_at();
  if (busy_until - now <= kUplinkHorizon) return std::nullopt;
  return busy_until - kUplinkHorizon / 2;  // then there is room for several frames at once
}

void Fabric::send(std::size_t port, Frame* frame, Nanoseconds now) {
  Port& source = ports_[port];
  frame->wire_bytes = tap_wire_bytes(frame->bytes());
  const auto destination = frame->wire_bytes > 0 ? destination_port(*frame, ports_.size()) : std::nullopt;
  if (!destination || *destination == port) {
    ++source.counters.strange_frames;
    return drop(frame);
  }
  if (source.settings.cut) {
    ++source.counters.cut_frames;
    return drop(frame);
  }
  ++source.counters.sent_frames;
  source.counters.sent_bytes += static_cast<std::uint64_t>(frame->wire_bytes);
  frame->source = static_cast<std::uint16_t>(port);
  frame->destination = static_cast<std::uint16_t>(*destination);
  frame->passage = source.up.serve(now, frame->wire_bytes) + source.settings.delay / 2;
  frame->stage = source.group == ports_[*destination].group ? Stage::kDownlink : Stage::kTrunkUp;
  schedule(frame);
}

Fabric::Hop Fabric::hop(const Frame& frame) {
  switch (frame.stage) {
    case Stage::kTrunkUp: {
      Group& group = groups_[ports_[frame.source].group];
      return {&group.out, group.settings.buffer_bytes};
    }
    case Stage::kTrunkDown: {
      Group& group = groups_[ports_[frame.destination].group];
      return {&group.in, group.settings.buffer_bytes};
    }
    case Stage::kDownlink:
    case Stage::kHost:
      break;
  }
  Port& port = ports_[frame.destination];
  return {&port.down, port.settings.buffer_bytes};
}

void Fabric::schedule(Frame* frame) {
  const Nanoseconds time = frame->stage == Stage::kHost
                               ? frame->passage.last
                               : hop(*frame).link->ready(frame->passage, frame->wire_bytes);
  events_.push({time, events_made_++, frame});
}

void Fabric::enter(Frame* frame, Nanoseconds now) {
  const Hop next = hop(*frame);
  Port& destination = ports_[frame->destination];
  // What is being sent right now needs no buffer: a frame that finds the link idle always passes.
  const std::int64_t waiting = next.link->backlog(now);
  if (waiting > 0 && waiting + frame->wire_bytes > next.buffer_bytes) {
    ++destination.counters.dropped_frames;
    destination.counters.dropped_bytes += static_cast<std::uint64_t>(frame->wire_bytes);
    return drop(frame);
  }
  const Passage leaves = next.link->serve(now, frame->wire_bytes);
  switch (frame->stage) {
    case Stage::kTrunkUp:
      frame->passage = leaves + groups_[ports_[frame->source].group].settings.delay;
      frame->stage = Stage::kTrunkDown;
      break;
    case Stage::kTrunkDown:
      frame->passage = leaves;
      frame->stage = Stage::kDownlink;
      break;
    case Stage::kDownlink:
    case Stage::kHost:
      frame->passage = leaves + destination.settings.delay / 2;
      frame->stage = Stage::kHost;
      break;
  }
  schedule(frame);
}

void Fabric::hand_over(Frame* frame, Nanoseconds due, Nanoseconds now) {
  Port& port = ports_[frame->destination];
  if (port.settings.cut || ports_[frame->source].settings.cut) {
    ++port.counters.cut_frames;
    return drop(frame);
  }
  ++port.counters.received_frames;
  port.counters.received_bytes += static_cast<std::uint64_t>(frame->wire_bytes);
  const Nanoseconds late = std::max(now - due, Nanoseconds{0});
  ++lateness_.frames;
  lateness_.sum += late;
  lateness_.worst = std::max(lateness_.worst, late);
  if (late > std::chrono::microseconds(50)) ++lateness_.over_50us;
  deliver_(frame->destination, *frame);
  drop(frame);
}

void Fabric::advance(Nanoseconds now) {
  while (!events_.empty() && events_.top().time <= now) {
    const Event event = events_.top();
    events_.pop();
    if (event.frame->stage == Stage::kHost) {
      hand_over(event.frame, event.time, now);
    } else {
      enter(event.frame, event.time);
    }
  }
}

std::optional<Nanoseconds> Fabric::next_event() const {
  if (events_.empty()) return std::nullopt;
  return events_.top().time;
}

void Fabric::set(std::size_t port, const PortSettings& settings) {
  Port& changed = ports_[port];
  changed.settings = settings;
  changed.up.set_bytes_per_second(settings.up_bytes_per_second);
  changed.down.set_bytes_per_second(settings.down_bytes_per_second);
}

}  // namespace commtune::cluster
