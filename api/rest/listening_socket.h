#pragma once
// Where the service can be reached.

#include "api/rest/options.h"

namespace commtune::api::rest {

class ListeningSocket {
 public:
  /// Binds the address. Throws Error{kConflict} when it is in use, Error{kUnavailable} when it cannot be
  /// bound.
  explicit ListeningSocket(const ServeOptions& options);
  ~ListeningSocket();
  ListeningSocket(const ListeningSocket&) = delete;
  ListeningSocket& operator=(const ListeningSocket&) = delete;

  /// Readable when somebody has come.
  int descriptor() const { return descriptor_; }
  int port() const { return port_; }
  /// The socket of the next who has come, owned by the caller; -1 with errno when there is none. Never waits.
  int accept() const;

 private:
  int descriptor_ = -1;
  int port_ = 0;
};

}  // namespace commtune::api::rest
