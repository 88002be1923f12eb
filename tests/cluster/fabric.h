#pragma once
// The switch without its devices: ports, groups and trunks as a discrete-event model. Whoever owns the TAP
// devices hands frames in with the time when they were read, and gets them back when they have to be written.
//
// The way of a frame from host s to host d:
//
//   uplink of s -> delay_s / 2 -> [trunk out of s's group -> trunk delay -> trunk into d's group ->]
//   downlink of d -> delay_d / 2 -> host d
//
// An uplink sends one super-frame after the other, as a card with segmentation offload does, and never drops:
// a host whose uplink is busy for longer than kUplinkHorizon is not read from, so the rest waits in its
// kernel's queue. Trunks and downlinks are LinkQueues: packets interleave, and what does not fit into the
// buffer is lost. A train that lost some packets is handed to the host in pieces. Simplification: a train
// enters the next link once its last packet is due in the present one, so behind a trunk packets interleave a
// little coarser.

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <span>
#include <vector>

#include "tests/cluster/frame.h"
#include "tests/cluster/link_clock.h"
#include "tests/cluster/link_queue.h"

namespace commtune::cluster {

/// How a host is attached.
struct PortSettings {
  std::int64_t up_bytes_per_second = 125'000'000;    ///< host to network, wire bytes
  std::int64_t down_bytes_per_second = 125'000'000;  ///< network to host, wire bytes
  Time delay{0};                                     ///< each path through this port gets half of it
  std::int64_t buffer_bytes = 1 << 20;               ///< before the downlink, wire bytes
  bool cut = false;                                  ///< nothing passes, in either direction
};

/// How a group of hosts is attached to the others.
struct TrunkSettings {
  std::int64_t bytes_per_second = 125'000'000;  ///< per direction
  Time delay{0};                                ///< between any two groups
  std::int64_t buffer_bytes = 1 << 20;
};

/// What passed a port since the start. Bytes are wire bytes; frames are super-frames.
struct PortCounters {
  std::uint64_t sent_frames = 0;  ///< taken from the host
  std::uint64_t sent_bytes = 0;
  std::uint64_t received_frames = 0;  ///< handed to the host
  std::uint64_t received_bytes = 0;
  std::uint64_t dropped_packets = 0;  ///< did not fit into a buffer on the way to this host
  std::uint64_t cut_frames = 0;       ///< met a cut link
  std::uint64_t strange_frames = 0;   ///< sent by this host to no host of the cluster (broadcast, unknown)
};

/// How late deliveries were, against the time that the model gave them.
struct Lateness {
  std::uint64_t frames = 0;
  Time sum{0};
  Time worst{0};
  std::uint64_t over_50us = 0;

  void add(Time late);
};

/// MAC address of the host behind a port: 02:c7:00:00 and the port's index + 1 in 16 bits.
std::array<std::uint8_t, 6> mac_address(std::size_t port);

class Fabric {
 public:
  /// Called with a TAP frame whose time has come; the bytes are only lent.
  using Deliver = std::function<void(std::size_t port, std::span<const std::byte> tap_frame)>;

  /// A host is not read from while its uplink is busy for longer than this.
  static constexpr Time kUplinkHorizon = std::chrono::milliseconds(2);

  explicit Fabric(Deliver deliver, std::size_t frames_in_flight = 8192);

  /// Returns the new group's index. A group of its own needs no trunk.
  std::size_t add_group(const TrunkSettings& settings);
  /// Returns the new port's index. group  one that add_group() returned
  std::size_t add_port(const PortSettings& settings, std::size_t group);

  /// May the host behind this port be read from? If not, ask again at the time returned.
  std::optional<Time> wait_to_read(std::size_t port, Time now) const;

  /// A buffer to read into, or null while all are in flight. Give it to send() or drop().
  Frame* take_frame() { return pool_.take(); }
  void drop(Frame* frame) { pool_.give_back(frame); }

  /// A frame that was read from the host behind `port` at `now`; `frame->length` and the bytes are set.
  void send(std::size_t port, Frame* frame, Time now);

  /// Moves every frame whose time has come, in the order of these times. Late calls do not shift later
  /// events.
  void advance(Time now);

  /// When advance() has to be called next, so that no delivery is late; none while the network is empty. What
  /// happens within the network may be reckoned later than it happens, up to the delay of the last link.
  std::optional<Time> next_event() const;

  void set(std::size_t port, const PortSettings& settings);
  const PortSettings& settings(std::size_t port) const { return ports_[port].settings; }
  const PortCounters& counters(std::size_t port) const { return ports_[port].counters; }
  std::size_t group(std::size_t port) const { return ports_[port].group; }
  std::size_t ports() const { return ports_.size(); }
  std::size_t groups() const { return groups_.size(); }
  const TrunkSettings& trunk(std::size_t group) const { return groups_[group].settings; }
  const Lateness& lateness() const { return lateness_; }

 private:
  struct Port {
    PortSettings settings;
    std::size_t group;
    LinkClock up;
    LinkQueue down;
    PortCounters counters;
  };
  struct Group {
    TrunkSettings settings;
    LinkQueue out;
    LinkQueue in;
  };
  struct Event {
    Time time;
    std::uint64_t order;  // ties are served in the order in which they were made
    Frame* frame;
    bool operator>(const Event& other) const {
      return time != other.time ? time > other.time : order > other.order;
    }
  };

  using Events = std::priority_queue<Event, std::vector<Event>, std::greater<>>;

  LinkQueue& link(const Frame& frame);
  void schedule(Time time, Frame* frame);
  Events* first_due(Time now);
  void find_leeway();
  void enter_stage(Frame* frame);
  void leave_link(Frame* frame);
  void hand_over(Frame* frame, Time due, Time now);
  void deliver_survivors(const Frame& frame);

  Deliver deliver_;
  FramePool pool_;
  std::vector<Port> ports_;
  std::vector<Group> groups_;
  Events within_;      // a train's last packet is due in a link
  Events deliveries_;  // a train reaches its host
  Time leeway_{0};     // no delivery follows an event within the network sooner
  std::uint64_t events_made_ = 0;
  Lateness lateness_;
  std::vector<std::byte> piece_;  // of a train that lost packets
};

}  // namespace commtune::cluster
