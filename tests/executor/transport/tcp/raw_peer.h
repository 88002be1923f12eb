#pragma once
// One who speaks to a rank's socket byte by byte, as attackers do.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "executor/base/descriptor.h"
#include "executor/transport/tcp/address_card.h"

namespace commtune::tests {

/// A blocking connection from one address of this host to another. Gives up waiting after 100 s.
class RawPeer {
 public:
  /// Both of version 4.
  RawPeer(const IpAddress& from, const tcp::Endpoint& to)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval patience{100, 0};
    setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    const sockaddr_in source = address(from, 0), destination = address(to.ip, to.port);
    const bool connected = bind(socket_.get(), raw(source), sizeof source) == 0 &&
                           connect(socket_.get(), raw(destination), sizeof destination) == 0;
    error_ = connected ? 0 : errno;
  }

  /// An errno, 0 where it is connected.
  int error() const { return error_; }
  /// Whether the other side still takes it.
  bool send(std::span<const std::byte> bytes) const {
    return ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == std::ssize(bytes);
  }
  template <typename Message>
  bool say(const Message& message) const {
    return send(std::as_bytes(std::span(&message, 1)));
  }
  /// Waits for a whole message; false where the other side hangs up before.
  template <typename Message>
  bool receive(Message& message) const {
    return recv(socket_.get(), &message, sizeof message, MSG_WAITALL) == static_cast<ssize_t>(sizeof message);
  }
  /// Waits until the other side has hung up; false where it says something, or nothing for too long.
  bool is_refused() const {
    std::byte byte{};
    const auto got = recv(socket_.get(), &byte, 1, 0);
    return got == 0 || (got < 0 && errno == ECONNRESET);
  }

 private:
  static sockaddr_in address(const IpAddress& ip, std::uint32_t port) {
    sockaddr_in result{};
    result.sin_family = AF_INET;
    std::memcpy(&result.sin_addr, ip.bytes.data() + 12, sizeof result.sin_addr);
    result.sin_port = htons(static_cast<std::uint16_t>(port));
    return result;
  }
  static const sockaddr* raw(const sockaddr_in& address) {
    return reinterpret_cast<const sockaddr*>(&address);
  }

  Descriptor socket_;
  int error_ = 0;
};

}  // namespace commtune::tests
