#include "api/rest/http/listening_socket.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "api/rest/http/unix_socket.h"
#include "perfmodel/base/error.h"

namespace commtune::api::rest {
namespace {

struct FreeAddresses {
  void operator()(addrinfo* addresses) const noexcept { ::freeaddrinfo(addresses); }
};

[[noreturn]] void fail(const ServeOptions& options, const char* why, int error) {
  throw Error(error == EADDRINUSE ? ErrorCode::kConflict : ErrorCode::kUnavailable,
              fmt::format("--listen {}:{}: cannot be bound: {}", options.host, options.port, why));
}

/// A socket that listens there, or -1 with errno.
int listen_at(const addrinfo& address) {
  const int socket =
      ::socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, address.ai_protocol);
  if (socket < 0) return -1;
  const int on = 1, off = 0;
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (address.ai_family == AF_INET6) ::setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  if (::bind(socket, address.ai_addr, address.ai_addrlen) == 0 && ::listen(socket, kBacklog) == 0)
    return socket;
  const int why = errno;
  ::close(socket);
  errno = why;
  return -1;
}

int listen_on(const ServeOptions& options) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (::getaddrinfo(options.host.c_str(), std::to_string(options.port).c_str(), &hints, &found) != 0)
    fail(options, "no such address here", 0);
  const std::unique_ptr<addrinfo, FreeAddresses> addresses(found);
  int why = 0;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    const int socket = listen_at(*each);
    if (socket >= 0) return socket;
    why = errno;
  }
  fail(options, std::strerror(why), why);
}

int port_of(int socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port
                                             : reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

}  // namespace

ListeningSocket::ListeningSocket(const ServeOptions& options) {
  if (!options.unix_socket) {
    descriptor_ = listen_on(options);
    port_ = port_of(descriptor_);
    return;
  }
  allowed_ = allowed_users(*options.unix_socket);
  const BoundUnixSocket bound = bind_unix_socket(*options.unix_socket);
  descriptor_ = bound.descriptor;
  inode_ = bound.inode;
  path_ = options.unix_socket->path;
}

ListeningSocket::~ListeningSocket() {
  ::close(descriptor_);
  struct stat status {};
  if (!path_.empty() && ::lstat(path_.c_str(), &status) == 0 && status.st_ino == inode_)
    ::unlink(path_.c_str());
}

std::string ListeningSocket::refusal(int client) const {
  if (path_.empty()) return "";
  const auto peer = peer_of(client);
  if (!peer) return "the system does not say who is at the other end";
  if (std::find(allowed_.begin(), allowed_.end(), *peer) != allowed_.end()) return "";
  return fmt::format("user {} may not use this socket; see --allow-user", *peer);
}

int ListeningSocket::accept() const { return ::accept4(descriptor_, nullptr, nullptr, SOCK_CLOEXEC); }

}  // namespace commtune::api::rest
