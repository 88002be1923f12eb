#include "executor/transport/mpi/doorbell.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "executor/base/random_digits.h"
#include "perfmodel/base/error.h"

namespace commtune {
namespace {

// The kernel queues far fewer (net.unix.max_dgram_qlen is 10 on most systems). Whoever is on this host can
// ring without end, and we would listen to nothing else.
constexpr int kMostRings = 1024;

/// Address in the abstract namespace: a leading zero byte, then the name.
socklen_t fill_address(const std::string& name, sockaddr_un& address) {
  address = {};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path + 1, sizeof address.sun_path - 2);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

}  // namespace

Doorbell::Doorbell() : socket_(socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
  name_ = "commtune-bell-" + random_digits();
  sockaddr_un address{};
  const socklen_t length = fill_address(name_, address);
  if (socket_ < 0 || bind(socket_, reinterpret_cast<const sockaddr*>(&address), length) != 0) {
    const std::string why = std::strerror(errno);
    if (socket_ >= 0) close(socket_);
    throw Error(ErrorCode::kUnavailable, "socket for waking ranks of this host: " + why);
  }
}

Doorbell::~Doorbell() { close(socket_); }

void Doorbell::silence() noexcept {
  std::array<char, 8> rung{};
  for (int i = 0; i < kMostRings && recv(socket_, rung.data(), rung.size(), 0) >= 0; ++i) {
  }
}

void Doorbell::set_peers(const std::vector<std::string>& names) {
  peers_.assign(names.size(), {});
  for (std::size_t rank = 0; rank < names.size(); ++rank) {
    if (!names[rank].empty()) peers_[rank].length = fill_address(names[rank], peers_[rank].address);
  }
}

void Doorbell::ring(int rank) noexcept {
  const Peer& peer = peers_[static_cast<std::size_t>(rank)];
  if (peer.length == 0) return;
  // A full queue means that it has rung often enough, and a missing socket that the rank is gone.
  static_cast<void>(sendto(socket_, "", 1, 0, reinterpret_cast<const sockaddr*>(&peer.address), peer.length));
}

}  // namespace commtune
