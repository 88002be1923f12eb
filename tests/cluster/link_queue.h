#pragma once
// One direction of an emulated link that several senders share: a finite first-come-first-served buffer
// before a serialising clock, packet by packet.

#include <cstdint>
#include <vector>

#include "tests/cluster/frame.h"
#include "tests/cluster/link_clock.h"

namespace commtune::cluster {

/// Packets of different trains interleave as they arrive, so a small one waits for the packets before it and
/// not for a whole train; and a packet that does not fit into the buffer is lost alone (tail drop).
///
/// Bits go on as they come (cut-through): a packet that arrives during [first, last] and takes D to serialise
/// here is ready at max(first, last - D). A faster link thus starts late enough not to run dry, a slower one
/// starts with the first bit, and a train crosses a row of links of equal rate in the time of one.
///
/// Nothing happens by itself: the owner calls serve_until() when a frame's last packet is ready. Frames are
/// lent.
class LinkQueue {
 public:
  /// bytes_per_second > 0; buffer_bytes >= 0 (a packet that finds the link idle needs none)
  LinkQueue(std::int64_t bytes_per_second, std::int64_t buffer_bytes);

  void set(std::int64_t bytes_per_second, std::int64_t buffer_bytes);

  /// A train that will arrive (or is arriving) as frame->passage says; sets frame->served and frame->leaves.
  /// Packets marked lost do not come. Returns when the train's last packet is ready.
  Time join(Frame* frame);

  /// Sends or drops every packet that is ready until then, in the order of their being ready. `until` must
  /// not decrease from call to call.
  void serve_until(Time until);

  /// True once each packet of a train that joined has been sent or dropped.
  static bool done(const Frame& frame) { return frame.served == frame.train.packets; }

  /// When the last packet is ready, at the present rate.
  Time last_ready(const Frame& frame) const;

 private:
  struct Arrival {
    Time ready;           // of the train's next packet
    std::uint64_t order;  // ties are served in the order of joining
    Frame* frame;
    bool operator>(const Arrival& other) const {
      return ready != other.ready ? ready > other.ready : order > other.order;
    }
  };

  Time ready(const Frame& frame, std::size_t packet) const;
  void serve(Frame& frame, Time ready);

  LinkClock clock_;
  std::int64_t buffer_bytes_;
  std::uint64_t joined_ = 0;
  std::vector<Arrival> arriving_;  // a heap, the next one at the front
};

}  // namespace commtune::cluster
