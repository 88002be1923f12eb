#pragma once
// Which network TCP connections use, and how fast.

#include <string>

#include "perfmodel/base/units.h"

namespace commtune {

struct TcpOptions {
  /// Address of a network to use, such as "10.0.0.0/24" or "fd00::/64"; empty: any that both ends share but
  /// the loopback one.
  std::string network;
  /// Bytes that the kernel may hold unsent per connection (TCP_NOTSENT_LOWAT): what is more urgent waits
  /// behind them. A paced connection's hold no more than leaves in half a millisecond.
  Bytes unsent_limit{32 << 10};
  /// Bytes per second that a connection to another host sends at most (SO_MAX_PACING_RATE), of which it gets
  /// its share (Transport::share_links); 0: as TCP likes.
  /// Without it TCP fills every queue up to the receiver, and what is urgent waits in all of them: at 1 Gb/s
  /// and a round trip of 0.4 ms 0.8 MB were on their way, 6.2 ms of them.
  double pace = 0;
  Seconds connect_timeout{10};  ///< for the whole mesh
  void check() const;           ///< throws Error{kBadInput} naming field, value and rule
};

}  // namespace commtune
