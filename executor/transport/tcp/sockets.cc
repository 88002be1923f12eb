#include "executor/transport/tcp/sockets.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <string>

#include "perfmodel/base/error.h"

namespace commtune::tcp {
namespace {

Error system_error(ErrorCode code, const std::string& what) {
  return Error(code, fmt::format("{}: {}", what, std::strerror(errno)));
}

/// As system calls take it.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  const sockaddr* raw() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* raw() { return reinterpret_cast<sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }
};

SocketAddress socket_address(const Endpoint& endpoint) {
  SocketAddress address;
  const auto port = htons(static_cast<std::uint16_t>(endpoint.port));
  if (endpoint.ip.is_v4()) {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = port;
    std::memcpy(&v4.sin_addr, endpoint.ip.bytes.data() + 12, sizeof v4.sin_addr);
    std::memcpy(&address.storage, &v4, address.length = sizeof v4);
  } else {
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_port = port;
    std::memcpy(&v6.sin6_addr, endpoint.ip.bytes.data(), sizeof v6.sin6_addr);
    std::memcpy(&address.storage, &v6, address.length = sizeof v6);
  }
  return address;
}

Endpoint endpoint_of(const SocketAddress& address) {
  if (address.family() == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &address.storage, sizeof v4);
    return {v4_address(ntohl(v4.sin_addr.s_addr)), ntohs(v4.sin_port)};
  }
  sockaddr_in6 v6{};
  std::memcpy(&v6, &address.storage, sizeof v6);
  Endpoint endpoint{{}, ntohs(v6.sin6_port)};
  std::ranges::copy(v6.sin6_addr.s6_addr, endpoint.ip.bytes.begin());
  return endpoint;
}

std::optional<Endpoint> own_endpoint(int socket) {
  SocketAddress address;
  if (getsockname(socket, address.raw(), &address.length) != 0) return std::nullopt;
  return endpoint_of(address);
}

Descriptor open_socket(int family) {
  Descriptor opened(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!opened) throw system_error(ErrorCode::kUnavailable, "opening a socket");
  return opened;
}

}  // namespace

std::pair<Descriptor, std::uint32_t> listen_at(const IpAddress& ip) {
  const SocketAddress address = socket_address({ip, 0});
  Descriptor listener = open_socket(address.family());
  if (bind(listener.get(), address.raw(), address.length) != 0 || listen(listener.get(), SOMAXCONN) != 0) {
    throw system_error(ErrorCode::kUnavailable, fmt::format("listening for other ranks at {}", to_text(ip)));
  }
  const std::uint32_t port = own_endpoint(listener.get()).value_or(Endpoint{}).port;
  return {std::move(listener), port};
}

std::optional<std::pair<Descriptor, IpAddress>> accept_from(int listener) {
  SocketAddress from;
  Descriptor accepted(accept4(listener, from.raw(), &from.length, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (accepted) return std::pair{std::move(accepted), endpoint_of(from).ip};
  if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
    throw system_error(ErrorCode::kUnavailable, "accepting a connection");
  }
  return std::nullopt;
}

Descriptor begin_connecting(const IpAddress& from, const Endpoint& to) {
  const SocketAddress source = socket_address({from, 0}), destination = socket_address(to);
  Descriptor connection = open_socket(destination.family());
  // The port is then chosen for this destination alone: there are as many as ranks need.
  const int on = 1;
  setsockopt(connection.get(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
  if (bind(connection.get(), source.raw(), source.length) != 0) {
    throw system_error(ErrorCode::kUnavailable, fmt::format("sending from {}", to_text(from)));
  }
  if (connect(connection.get(), destination.raw(), destination.length) != 0 && errno != EINPROGRESS) {
    throw system_error(ErrorCode::kPeerLost,
                       fmt::format("connecting from {} to {}", to_text(from), to_text(to)));
  }
  return connection;
}

int connecting_error(int socket) {
  int error = 0;
  socklen_t length = sizeof error;
  getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &length);
  return error;
}

std::optional<IpAddress> routed_source(const IpAddress& to) {
  // Connecting a datagram socket sends nothing: it only looks up the route. Any port will do.
  const SocketAddress address = socket_address({to, 9});
  const Descriptor asked(socket(address.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!asked || connect(asked.get(), address.raw(), address.length) != 0) return std::nullopt;
  const std::optional<Endpoint> own = own_endpoint(asked.get());
  return own ? std::optional(own->ip) : std::nullopt;
}

bool send_whole(int socket, std::span<const std::byte> bytes) {
  return send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT) == std::ssize(bytes);
}

Inbox::State Inbox::read(int socket, std::size_t length) {
  assert(length > 0 && length <= kLongest);
  while (got_ < length) {
    const ssize_t got = recv(socket, bytes_.data() + got_, length - got_, MSG_DONTWAIT);
    if (got > 0) {
      got_ += static_cast<std::size_t>(got);
    } else if (got == 0 || (errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK)) {
      return State::kClosed;
    } else if (errno != EINTR) {
      return State::kWaiting;
    }
  }
  return State::kComplete;
}

std::span<const std::byte> Inbox::take() { return std::span(bytes_).first(std::exchange(got_, 0)); }

}  // namespace commtune::tcp
