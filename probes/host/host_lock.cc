#include "probes/host/host_lock.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <utility>

#include "perfmodel/base/error.h"
#include "probes/host/socket_owner.h"

namespace commtune::probes {

namespace {
constexpr std::string_view kName = "commtune-probe";
}

std::optional<HostLock> HostLock::take() {
  const int socket = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) {
    throw Error(ErrorCode::kUnavailable,
                std::string("no socket for the probes' lock: ") + std::strerror(errno));
  }
  HostLock lock(socket);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::copy(kName.begin(), kName.end(), address.sun_path + 1);  // a leading zero: no file
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + kName.size());
  if (::bind(socket, reinterpret_cast<const sockaddr*>(&address), length) == 0) {
    return lock;
  }
  if (errno == EADDRINUSE) {
    return std::nullopt;
  }
  throw Error(ErrorCode::kUnavailable, std::string("cannot take the probes' lock: ") + std::strerror(errno));
}

std::string HostLock::conflict(const std::string& host) {
  const std::string what = "another probe is running on host " + host;
  const std::optional<uid_t> holder = owner_of_abstract_socket(kName);
  if (!holder || *holder == ::geteuid()) {
    return what + ": two at once would measure each other; wait for it to end";
  }
  return what + ", or something that keeps probes from it: user " + user_name(*holder) + " holds the lock @" +
         std::string(kName) +
         "; wait, ask that user, or let an administrator end the process (`ss -xap` names it)";
}

HostLock::~HostLock() {
  if (socket_ >= 0) ::close(socket_);
}

HostLock::HostLock(HostLock&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}

HostLock& HostLock::operator=(HostLock&& other) noexcept {
  std::swap(socket_, other.socket_);
  return *this;
}

}  // namespace commtune::probes
