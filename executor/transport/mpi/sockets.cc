#include "executor/transport/mpi/sockets.h"

#include <dirent.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

namespace commtune {
namespace {

/// Descriptors of this process's sockets, each with what the kernel knows it by for as long as it is open.
std::vector<std::pair<int, ino_t>> open_sockets() {
  std::vector<std::pair<int, ino_t>> found;
  DIR* directory = opendir("/proc/self/fd");
  if (directory == nullptr) return found;
  while (const dirent* entry = readdir(directory)) {
    if (entry->d_name[0] == '.') continue;
    const int descriptor = std::atoi(entry->d_name);  // NOLINT(cert-err34-c): the kernel's own numbers
    struct stat status {};
    if (fstat(descriptor, &status) == 0 && S_ISSOCK(status.st_mode))
      found.emplace_back(descriptor, status.st_ino);
  }
  closedir(directory);
  return found;
}

int option(int socket, int name) {
  int value = 0;
  socklen_t length = sizeof value;
  return getsockopt(socket, SOL_SOCKET, name, &value, &length) == 0 ? value : 0;
}

bool is_tcp(int socket) { return option(socket, SO_PROTOCOL) == IPPROTO_TCP; }

/// Of one end of a connection, as getsockname() and getpeername() say it; nullopt when it has none.
std::optional<std::uint16_t> port(int socket, int (*name)(int, sockaddr*, socklen_t*) noexcept) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (name(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0) return std::nullopt;
  if (address.ss_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
  if (address.ss_family == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
  return std::nullopt;
}

bool is_one_of(std::optional<std::uint16_t> port, std::span<const std::uint16_t> ports) {
  return port && std::find(ports.begin(), ports.end(), *port) != ports.end();
}

}  // namespace

LibrarySockets::LibrarySockets() {
  for (const auto& [descriptor, inode] : open_sockets()) before_.insert(inode);
}

std::vector<int> LibrarySockets::new_sockets() const {
  std::vector<int> found;
  for (const auto& [descriptor, inode] : open_sockets()) {
    if (!before_.contains(inode) && is_tcp(descriptor)) found.push_back(descriptor);
  }
  return found;
}

std::vector<std::uint16_t> LibrarySockets::listening() const {
  std::vector<std::uint16_t> ports;
  for (const int socket : new_sockets()) {
    const auto own = port(socket, getsockname);
    if (own && option(socket, SO_ACCEPTCONN) != 0) ports.push_back(*own);
  }
  return ports;
}

void LibrarySockets::limit_unsent(std::size_t bytes, std::span<const std::uint16_t> own,
                                  std::span<const std::uint16_t> others) const {
  const int limit = static_cast<int>(bytes);
  for (const int socket : new_sockets()) {
    const auto far = port(socket, getpeername);
    if (!far) continue;  // not connected
    if (!is_one_of(port(socket, getsockname), own) && !is_one_of(far, others)) continue;
    static_cast<void>(setsockopt(socket, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &limit, sizeof limit));
  }
}

}  // namespace commtune
