#pragma once
// A Unix socket as a file: made with its owner and mode, and who is at its other end.

#include <sys/types.h>

#include <optional>
#include <vector>

#include "api/rest/http/options.h"

namespace commtune::api::rest {

struct BoundUnixSocket {
  int descriptor = -1;  ///< listens; the caller's
  ino_t inode = 0;      ///< of the file
};

/// Nobody but the service's own user can connect before the file has its owner and mode. A socket that nobody
/// listens on any more is replaced; nothing else is, and no link is followed.
/// Throws Error{kConflict} when something else is there, Error{kUnavailable} when it cannot be made,
/// Error{kBadInput} for an owner that does not exist.
BoundUnixSocket bind_unix_socket(const UnixSocket& socket);

/// The service's own user and those that the socket names. Throws Error{kBadInput} for one that does not
/// exist.
std::vector<uid_t> allowed_users(const UnixSocket& socket);

/// The user of the process at the other end of a connection, as the system knows him.
std::optional<uid_t> peer_of(int socket);

}  // namespace commtune::api::rest
