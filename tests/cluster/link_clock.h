#pragma once
// The clock of one direction of an emulated link: says when bits leave, without a thread, a queue or a wall
// clock.

#include <chrono>
#include <cstdint>

namespace commtune::cluster {

/// Moments and durations on the network's own time line, which starts at 0 with the switch. Picoseconds, so
/// that rounding does not add up over a train of packets; 64 bits of them last 106 days.
using Time = std::chrono::duration<std::int64_t, std::pico>;

/// When the first and the last bit of something pass one point of the network; first <= last.
struct Passage {
  Time first{};
  Time last{};

  friend Passage operator+(Passage passage, Time delay) {
    return {passage.first + delay, passage.last + delay};
  }
  bool operator==(const Passage&) const = default;
};

/// Sends one thing after another at `bytes_per_second` wire bytes.
class LinkClock {
 public:
  /// bytes_per_second > 0
  explicit LinkClock(std::int64_t bytes_per_second) : bytes_per_second_(bytes_per_second) {}

  std::int64_t bytes_per_second() const { return bytes_per_second_; }
  /// Holds for what is sent from now on; what has been promised stays.
  void set_bytes_per_second(std::int64_t rate) { bytes_per_second_ = rate; }

  /// Time to serialise that many wire bytes (up to 9 MB), rounded up to a picosecond.
  Time duration(std::int64_t wire_bytes) const;

  /// Bytes promised but not yet sent at `now`.
  std::int64_t backlog(Time now) const;

  /// Sends as soon as `ready` and the link is free; returns when the bits leave. Calls must come in the order
  /// in which they are to be served.
  Passage send(Time ready, std::int64_t wire_bytes);

  /// When the link will be idle if nothing else comes.
  Time free_at() const { return free_at_; }

 private:
  std::int64_t bytes_per_second_;
  Time free_at_{};
};

}  // namespace commtune::cluster
