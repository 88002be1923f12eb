#pragma once
// The system calls on TCP sockets that a mesh is built with. All sockets are non-blocking.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "executor/base/descriptor.h"
#include "executor/transport/tcp/address_card.h"

namespace commtune::tcp {

/// Listens at one address, at a port that the system picks and that is returned. Throws Error{kUnavailable}.
std::pair<Descriptor, std::uint32_t> listen_at(const IpAddress& ip);

/// A connection that somebody has opened, and from which address; nullopt: none is waiting.
/// throws  Error{kUnavailable} where the process has no descriptor or memory left for one
std::optional<std::pair<Descriptor, IpAddress>> accept_from(int listener);

/// Begins to connect from one of this host's addresses; writable when that has ended.
/// throws  Error{kUnavailable} for an address that this host does not have, Error{kPeerLost}
Descriptor begin_connecting(const IpAddress& from, const Endpoint& to);
/// How connecting has ended: an errno, 0 where the connection stands.
int connecting_error(int socket);

/// The own address from which the kernel would send to that one; nullopt where it has no route.
std::optional<IpAddress> routed_source(const IpAddress& to);

/// Sends without waiting. False unless all of it was taken; a fresh connection takes some hundred bytes.
bool send_whole(int socket, std::span<const std::byte> bytes);

/// Collects a message of known length from a socket.
class Inbox {
 public:
  static constexpr std::size_t kLongest = 64;
  enum class State { kWaiting, kComplete, kClosed };
  /// Reads what has come of a message of `length` bytes, at most kLongest, and never what follows it.
  State read(int socket, std::size_t length);
  /// The complete message; the next read() begins another one.
  std::span<const std::byte> take();

 private:
  std::array<std::byte, kLongest> bytes_{};
  std::size_t got_ = 0;
};

}  // namespace commtune::tcp
