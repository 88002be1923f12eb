#include "api/rest/http/unix_socket.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "api/rest/http/listening_socket.h"
#include "perfmodel/base/error.h"

namespace commtune::api::rest {
namespace {

constexpr std::size_t kLookUp = 16U << 10U;

[[noreturn]] void fail(const UnixSocket& socket, ErrorCode code, std::string_view why) {
  throw Error(code, fmt::format("--listen unix:{}: {}", socket.path.string(), why));
}

std::optional<id_t> number_of(const std::string& text) {
  id_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return {};
  return number;
}

uid_t user_of(const std::string& name, std::string_view flag) {
  if (const auto number = number_of(name)) return *number;
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, kLookUp> space{};
  ::getpwnam_r(name.c_str(), &entry, space.data(), space.size(), &found);
  if (found == nullptr)
    throw Error(ErrorCode::kBadInput, fmt::format("{} \"{}\": there is no such user", flag, name));
  return entry.pw_uid;
}

gid_t group_of(const std::string& name, std::string_view flag) {
  if (const auto number = number_of(name)) return *number;
  group entry{};
  group* found = nullptr;
  std::array<char, kLookUp> space{};
  ::getgrnam_r(name.c_str(), &entry, space.data(), space.size(), &found);
  if (found == nullptr)
    throw Error(ErrorCode::kBadInput, fmt::format("{} \"{}\": there is no such group", flag, name));
  return entry.gr_gid;
}

/// Numbers as fchownat takes them: -1 leaves what is there.
struct Owner {
  uid_t user = static_cast<uid_t>(-1);
  gid_t group = static_cast<gid_t>(-1);
};

Owner owner_of(const std::string& text) {
  constexpr std::string_view kFlag = "--socket-owner";
  const std::size_t colon = std::min(text.find(':'), text.size());
  Owner owner;
  if (colon > 0) owner.user = user_of(text.substr(0, colon), kFlag);
  if (colon + 1 < text.size()) owner.group = group_of(text.substr(colon + 1), kFlag);
  return owner;
}

sockaddr_un address_of(const UnixSocket& socket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = socket.path.string();
  std::memcpy(address.sun_path, path.data(), std::min(path.size(), sizeof(address.sun_path) - 1));
  return address;
}

/// Takes away the socket of a service that is gone.
void remove_stale(const UnixSocket& socket) {
  struct stat status {};
  if (::lstat(socket.path.c_str(), &status) != 0) return;
  if (!S_ISSOCK(status.st_mode)) fail(socket, ErrorCode::kConflict, "something else than a socket is there");
  const int client = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const sockaddr_un address = address_of(socket);
  const bool refused = ::connect(client, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 &&
                       errno == ECONNREFUSED;
  ::close(client);
  if (!refused || ::unlink(socket.path.c_str()) != 0)
    fail(socket, ErrorCode::kConflict, "a socket is there that is in use, or not ours to replace");
}

/// Gives the file its owner and mode, by way of a descriptor: whoever may write to its folder could put a
/// link in its place meanwhile. Its inode.
ino_t hand_over(const UnixSocket& socket, const Owner& owner) {
  const int file = ::open(socket.path.c_str(),
                          O_PATH | O_NOFOLLOW | O_CLOEXEC);  // NOLINT(cppcoreguidelines-pro-type-vararg)
  struct stat status {};
  errno = 0;
  const bool done = file >= 0 && ::fstat(file, &status) == 0 && S_ISSOCK(status.st_mode) &&
                    status.st_uid == ::geteuid() &&
                    ::fchownat(file, "", owner.user, owner.group, AT_EMPTY_PATH) == 0 &&
                    ::chmod(fmt::format("/proc/self/fd/{}", file).c_str(), socket.mode) == 0;
  const int why = errno;
  ::close(file);
  if (!done)
    fail(socket, ErrorCode::kUnavailable,
         fmt::format("cannot be given its owner and mode: {}",
                     why != 0 ? std::strerror(why) : "something else is there by now"));
  return status.st_ino;
}

}  // namespace

BoundUnixSocket bind_unix_socket(const UnixSocket& socket) {
  const Owner owner = owner_of(socket.owner);
  remove_stale(socket);
  BoundUnixSocket bound;
  bound.descriptor = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const sockaddr_un address = address_of(socket);
  const mode_t before = ::umask(0177);
  const bool there =
      ::bind(bound.descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  const int why = errno;
  ::umask(before);
  try {
    if (!there)
      fail(socket, why == EADDRINUSE ? ErrorCode::kConflict : ErrorCode::kUnavailable, std::strerror(why));
    bound.inode = hand_over(socket, owner);
    if (::listen(bound.descriptor, kBacklog) != 0)
      fail(socket, ErrorCode::kUnavailable, std::strerror(errno));
  } catch (const Error&) {
    ::close(bound.descriptor);
    throw;
  }
  return bound;
}

std::vector<uid_t> allowed_users(const UnixSocket& socket) {
  std::vector<uid_t> users{::geteuid()};
  for (const std::string& user : socket.users) users.push_back(user_of(user, "--allow-user"));
  return users;
}

std::optional<uid_t> peer_of(int socket) {
  ucred peer{};
  socklen_t length = sizeof(peer);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return {};
  return peer.uid;
}

}  // namespace commtune::api::rest
