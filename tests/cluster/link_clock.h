#pragma once
// The arithmetic of one direction of an emulated link: a virtual clock that says when bits leave, without a
// thread, a queue or a wall clock. All times are nanoseconds on one monotonic time line.

#include <chrono>
#include <cstdint>

namespace commtune::cluster {

using Nanoseconds = std::chrono::nanoseconds;

/// When the first and the last bit of a frame pass one point of the network; first <= last.
struct Passage {
  Nanoseconds first{};
  Nanoseconds last{};

  friend Passage operator+(Passage passage, Nanoseconds delay) {
    return {passage.first + delay, passage.last + delay};
  }
  bool operator==(const Passage&) const = default;
};

/// One direction of a link: serves frames first come, first served, at `bytes_per_second` wire bytes.
///
/// Frames are super-frames of up to 64 KiB that stand for a train of packets. A link does not wait for the
/// whole train: bits go on as they come (cut-through), so a train crosses a row of links of equal rate in the
/// time of one. A frame that arrives during `arrival` and takes D to serialise here may start at
/// `ready(arrival)` = max(arrival.first, arrival.last - D): a faster link starts late enough not to run dry
/// (and leaves its capacity to others until then), a slower one starts with the first bit. Simplification: a
/// train is served in one piece, so a small frame behind it waits for all of it, not for one packet of it.
class LinkClock {
 public:
  /// bytes_per_second > 0, counted on the wire (see wire_size.h).
  explicit LinkClock(std::int64_t bytes_per_second) : bytes_per_second_(bytes_per_second) {}

  std::int64_t bytes_per_second() const { return bytes_per_second_; }
  /// Holds for frames that are served from now on; what has been promised stays.
  void set_bytes_per_second(std::int64_t rate) { bytes_per_second_ = rate; }

  /// Time to serialise that many wire bytes, rounded up to a nanosecond.
  Nanoseconds duration(std::int64_t wire_bytes) const;

  /// When a frame that reaches this link during `arrival` first needs it. Frames must be given to serve() in
  /// the order of this moment.
  Nanoseconds ready(const Passage& arrival, std::int64_t wire_bytes) const;

  /// Bytes promised but not yet sent at `now`.
  std::int64_t backlog(Nanoseconds now) const;

  /// Sends a frame as soon as it is ready and the link is free; returns when its bits leave. Calls must come
  /// with non-decreasing `ready`.
  Passage serve(Nanoseconds ready, std::int64_t wire_bytes);

  /// When the link will be idle if nothing else comes.
  Nanoseconds free_at() const { return free_at_; }

 private:
  std::int64_t bytes_per_second_;
  Nanoseconds free_at_{};
};

}  // namespace commtune::cluster
