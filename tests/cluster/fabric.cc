#include "tests/cluster/fabric.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "tests/cluster/packet_train.h"

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

void Lateness::add(Time late) {
  late = std::max(late, Time{0});
  ++frames;
  sum += late;
  worst = std::max(worst, late);
  if (late > std::chrono::microseconds(50)) ++over_50us;
}

Fabric::Fabric(Deliver deliver, std::size_t frames_in_flight)
    : deliver_(std::move(deliver)), pool_(frames_in_flight), piece_(kLargestTapFrameBytes) {
  for (Events* events : {&within_, &deliveries_}) {
    std::vector<Event> storage;
    storage.reserve(frames_in_flight);
    *events = Events(std::greater<>(), std::move(storage));
  }
}

std::size_t Fabric::add_group(const TrunkSettings& settings) {
  const LinkQueue trunk(settings.bytes_per_second, settings.buffer_bytes);
  groups_.push_back({settings, trunk, trunk});
  return groups_.size() - 1;
}

std::size_t Fabric::add_port(const PortSettings& settings, std::size_t group) {
  assert(group < groups_.size());
  ports_.push_back({settings, group, LinkClock(settings.up_bytes_per_second),
                    LinkQueue(settings.down_bytes_per_second, settings.buffer_bytes), PortCounters{}});
  find_leeway();
  return ports_.size() - 1;
}

std::optional<Time> Fabric::wait_to_read(std::size_t port, Time now) const {
  const Time busy_until = ports_[port].up.free_at();
  if (busy_until - now <= kUplinkHorizon) return std::nullopt;
  return busy_until - kUplinkHorizon / 2;  // then there is room for several frames at once
}

void Fabric::send(std::size_t port, Frame* frame, Time now) {
  Port& source = ports_[port];
  frame->train = packet_train(frame->bytes());
  const auto destination = frame->train.packets > 0 ? destination_port(*frame, ports_.size()) : std::nullopt;
  if (!destination || *destination == port) {
    ++source.counters.strange_frames;
    return drop(frame);
  }
  if (source.settings.cut) {
    ++source.counters.cut_frames;
    return drop(frame);
  }
  const std::int64_t bytes = frame->train.wire_bytes();
  ++source.counters.sent_frames;
  source.counters.sent_bytes += static_cast<std::uint64_t>(bytes);
  frame->source = static_cast<std::uint16_t>(port);
  frame->destination = static_cast<std::uint16_t>(*destination);
  frame->passage = source.up.send(now, bytes) + source.settings.delay / 2;
  frame->stage = source.group == ports_[*destination].group ? Stage::kDownlink : Stage::kTrunkOut;
  enter_stage(frame);
}

LinkQueue& Fabric::link(const Frame& frame) {
  switch (frame.stage) {
    case Stage::kTrunkOut:
      return groups_[ports_[frame.source].group].out;
    case Stage::kTrunkIn:
      return groups_[ports_[frame.destination].group].in;
    case Stage::kDownlink:
    case Stage::kHost:
      break;
  }
  return ports_[frame.destination].down;
}

void Fabric::schedule(Time time, Frame* frame) {
  (frame->stage == Stage::kHost ? deliveries_ : within_).push({time, events_made_++, frame});
}

/// frame->stage and frame->passage are set; the next event is when that stage has something to say.
void Fabric::enter_stage(Frame* frame) {
  schedule(frame->stage == Stage::kHost ? frame->passage.last : link(*frame).join(frame), frame);
}

/// The frame's last packet has been sent or dropped by the link that it is in.
void Fabric::leave_link(Frame* frame) {
  Port& destination = ports_[frame->destination];
  if (frame->leaves.last == Time::min()) {  // no packet is left
    destination.counters.dropped_packets += frame->train.packets;
    return drop(frame);
  }
  switch (frame->stage) {
    case Stage::kTrunkOut:
      frame->passage = frame->leaves + groups_[ports_[frame->source].group].settings.delay;
      frame->stage = Stage::kTrunkIn;
      break;
    case Stage::kTrunkIn:
      frame->passage = frame->leaves;
      frame->stage = Stage::kDownlink;
      break;
    case Stage::kDownlink:
    case Stage::kHost:
      frame->passage = frame->leaves + destination.settings.delay / 2;
      frame->stage = Stage::kHost;
      break;
  }
  enter_stage(frame);
}

void Fabric::hand_over(Frame* frame, Time due, Time now) {
  Port& port = ports_[frame->destination];
  if (port.settings.cut || ports_[frame->source].settings.cut) {
    ++port.counters.cut_frames;
    return drop(frame);
  }
  ++port.counters.received_frames;
  port.counters.received_bytes += static_cast<std::uint64_t>(frame->train.wire_bytes());
  port.counters.dropped_packets += frame->lost.count();
  lateness_.add(now - due);
  if (frame->lost.none()) {
    deliver_(frame->destination, frame->bytes());
  } else {
    deliver_survivors(*frame);
  }
  drop(frame);
}

/// Each run of packets between two losses as a frame of its own.
void Fabric::deliver_survivors(const Frame& frame) {
  const std::size_t packets = frame.train.packets;
  for (std::size_t first = 0; first < packets; ++first) {
    if (frame.lost[first]) continue;
    std::size_t end = first + 1;
    while (end < packets && !frame.lost[end]) ++end;
    const auto piece = cut_out(frame.bytes(), first, end - first, piece_);
    if (!piece.empty()) deliver_(frame.destination, piece);
    first = end;
  }
}

/// The queue with the first of the events that are due; null if none is.
Fabric::Events* Fabric::first_due(Time now) {
  const auto due = [now](const Events& events) { return !events.empty() && events.top().time <= now; };
  if (!due(within_)) return due(deliveries_) ? &deliveries_ : nullptr;
  return due(deliveries_) && within_.top() > deliveries_.top() ? &deliveries_ : &within_;
}

void Fabric::advance(Time now) {
  while (Events* const events = first_due(now)) {
    const Event event = events->top();
    events->pop();
    if (event.frame->stage == Stage::kHost) {
      hand_over(event.frame, event.time, now);
      continue;
    }
    LinkQueue& present = link(*event.frame);
    present.serve_until(event.time);
    if (LinkQueue::done(*event.frame)) {
      leave_link(event.frame);
    } else {
      schedule(present.last_ready(*event.frame), event.frame);  // the link has become faster meanwhile
    }
  }
}

std::optional<Time> Fabric::next_event() const {
  std::optional<Time> next;
  if (!deliveries_.empty()) next = deliveries_.top().time;
  if (!within_.empty()) {
    const Time latest = within_.top().time + leeway_;
    next = std::min(next.value_or(latest), latest);
  }
  return next;
}

void Fabric::set(std::size_t port, const PortSettings& settings) {
  Port& changed = ports_[port];
  changed.settings = settings;
  changed.up.set_bytes_per_second(settings.up_bytes_per_second);
  changed.down.set(settings.down_bytes_per_second, settings.buffer_bytes);
  find_leeway();
}

void Fabric::find_leeway() {
  leeway_ = std::ranges::min_element(ports_, {}, [](const Port& port) { return port.settings.delay; })
                ->settings.delay /
            2;
}

}  // namespace commtune::cluster
