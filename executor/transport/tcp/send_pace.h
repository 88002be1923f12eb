#pragma once
// How much a connection's kernel is given at a time, so that what is urgent does not wait behind much.

#include <cstddef>
#include <limits>
#include <optional>

#include "executor/transport/transport.h"
#include "perfmodel/base/units.h"

namespace commtune::tcp {

/// Of one connection. Without set() the kernel takes what it will.
///
/// The kernel counts what it has not sent only when it begins a new buffer, and fills one of 64 KiB first,
/// whatever TCP_NOTSENT_LOWAT says: 3.7 ms of half a link of 300 Mb/s, and it leaves in one burst. So a
/// connection of such a link is asked how much it has unsent, and given as much as the whole link sends in a
/// millisecond. That costs two wake-ups a millisecond and host: on a link on which 64 KiB leave sooner they
/// cost more than they gain, and the kernel alone paces it.
class SendPace {
 public:
  /// link          bytes a second of the link that the connection shares with others
  /// share         its part of it, in (0, 1]: it sends no faster (SO_MAX_PACING_RATE) than that or, where
  ///               that is more, least_rate()
  /// unsent_limit  of the kernel, however fast
  void set(int fd, double link, double share, Bytes unsent_limit);

  /// Bytes that the kernel may be given now; 0: not yet, and due() says when.
  std::size_t room(int fd);
  /// When to ask again; empty when room() need not be waited for.
  std::optional<Clock::time_point> due() const { return due_; }
  /// Whether room() may be asked now.
  bool is_due();

 private:
  std::size_t quantum_ = 0;              // bytes that the kernel may have unsent; 0: no pace
  Clock::duration half_quantum_time_{};  // how long half of them take
  std::optional<Clock::time_point> due_;
};

/// Bytes a second below which the kernel sends a paced connection's bytes in bursts of a few packets.
/// round_trip  in microseconds
double least_rate(unsigned round_trip);

/// As fast as the kernel will.
inline constexpr double kUnlimitedRate = std::numeric_limits<double>::infinity();

/// The most that the kernel sends a second (SO_MAX_PACING_RATE), best effort.
void limit_rate(int fd, double bytes_per_second);

/// Bytes that the kernel may hold unsent before a connection counts as not writable, best effort: a kernel
/// that does not know the option does without it.
void limit_unsent(int fd, Bytes limit);

}  // namespace commtune::tcp
