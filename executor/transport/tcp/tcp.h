#pragma once
// Transport over plain TCP sockets: one full-duplex connection for each pair of ranks, sends in the order in
// which they were started, bytes straight from and into the caller's memory, and one epoll that sleeps in the
// kernel until something can move. Waiting costs no core, so ranks that share one do not starve each other.
// Small messages that are started together travel together: the last of them goes when its rank waits.

#include <memory>
#include <string>

#include "executor/transport/transport.h"
#include "perfmodel/units.h"

namespace commtune {

struct TcpOptions {
  /// Address of a network to use, such as "10.0.0.0/24"; empty: any that both ends share but the loopback
  /// one.
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

/// Connects every pair of ranks and returns when the mesh stands.
///
/// bootstrap  a working transport of the same ranks: tells who is where and carries the addresses; kept alive
/// and idle throws     Error{kTimeout} naming the rank and host that could not be reached,
/// Error{kUnavailable} without a usable
///            network address
/// Messages that arrive before their receive are kept in memory of the transport's own and copied.
/// library_all_reduce: none.
std::unique_ptr<Transport> make_tcp_transport(std::unique_ptr<Transport> bootstrap,
                                              const TcpOptions& options = {});

}  // namespace commtune
