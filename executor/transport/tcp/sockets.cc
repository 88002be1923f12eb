#include "executor/transport/tcp/sockets.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

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

sockaddr_in socket_address(const Endpoint& endpoint) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(endpoint.port));
  address.sin_addr.s_addr = htonl(endpoint.ip);
  return address;
}

const sockaddr* raw(const sockaddr_in& address) { return reinterpret_cast<const sockaddr*>(&address); }

Endpoint own_endpoint(int socket) {
  sockaddr_in address{};
  socklen_t length = sizeof address;
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0) return {};
  return {ntohl(address.sin_addr.s_addr), ntohs(address.sin_port)};
}

Descriptor open_socket() {
  Descriptor opened(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!opened) throw system_error(ErrorCode::kUnavailable, "opening a socket");
  return opened;
}

}  // namespace

std::pair<Descriptor, std::uint32_t> listen_at(std::uint32_t ip) {
  Descriptor listener = open_socket();
  const sockaddr_in address = socket_address({ip, 0});
  if (bind(listener.get(), raw(address), sizeof address) != 0 || listen(listener.get(), SOMAXCONN) != 0) {
    throw system_error(ErrorCode::kUnavailable, fmt::format("listening for other ranks at {}", to_text(ip)));
  }
  const std::uint32_t port = own_endpoint(listener.get()).port;
  return {std::move(listener), port};
}

std::optional<std::pair<Descriptor, std::uint32_t>> accept_from(int listener) {
  sockaddr_in from{};
  socklen_t length = sizeof from;
  Descriptor accepted(
      accept4(listener, reinterpret_cast<sockaddr*>(&from), &length, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (accepted) return std::pair{std::move(accepted), ntohl(from.sin_addr.s_addr)};
  if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
    throw system_error(ErrorCode::kUnavailable, "accepting a connection");
  }
  return std::nullopt;
}

Descriptor begin_connecting(std::uint32_t from, const Endpoint& to) {
  Descriptor connection = open_socket();
  // The port is then chosen for this destination alone: there are as many as ranks need.
  const int on = 1;
  setsockopt(connection.get(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
  const sockaddr_in source = socket_address({from, 0}), destination = socket_address(to);
  if (bind(connection.get(), raw(source), sizeof source) != 0) {
    throw system_error(ErrorCode::kUnavailable, fmt::format("sending from {}", to_text(from)));
  }
  if (connect(connection.get(), raw(destination), sizeof destination) != 0 && errno != EINPROGRESS) {
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

std::uint32_t routed_source(std::uint32_t to) {
  // Connecting a datagram socket sends nothing: it only looks up the route. Any port will do.
  const Descriptor asked(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = socket_address({to, 9});
  if (!asked || connect(asked.get(), raw(address), sizeof address) != 0) return 0;
  return own_endpoint(asked.get()).ip;
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
