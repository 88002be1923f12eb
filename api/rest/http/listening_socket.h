#pragma once
// Where the service can be reached.

#include <sys/types.h>

#include <string>
#include <vector>

#include "api/rest/http/options.h"

namespace commtune::api::rest {

constexpr int kBacklog = 4096;  ///< who may have come before they are accepted

class ListeningSocket {
 public:
  /// Binds the address, or makes the Unix socket: one that nobody listens on any more is replaced, nothing
  /// else is, and no link is followed. Throws Error{kConflict} when it is in use, Error{kUnavailable} when it
  /// cannot be bound, Error{kBadInput} for users and groups that do not exist.
  explicit ListeningSocket(const ServeOptions& options);
  /// Takes its Unix socket away, unless another one is in its place.
  ~ListeningSocket();
  ListeningSocket(const ListeningSocket&) = delete;
  ListeningSocket& operator=(const ListeningSocket&) = delete;

  /// Readable when somebody has come.
  int descriptor() const { return descriptor_; }
  int port() const { return port_; }
  /// The socket of the next who has come, owned by the caller; -1 with errno when there is none. Never waits.
  int accept() const;
  /// Why whoever is at the other end of an accepted socket may not come in: over a Unix socket users other
  /// than the allowed ones; "" when he may.
  std::string refusal(int client) const;

 private:
  int descriptor_ = -1;
  int port_ = 0;
  std::filesystem::path path_;  // of the Unix socket; empty: an address
  std::vector<uid_t> allowed_;  // to use it
  ino_t inode_ = 0;             // of its file
};

}  // namespace commtune::api::rest
