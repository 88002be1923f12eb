#pragma once
// Connects every pair of ranks with one TCP socket.

#include <vector>

#include "executor/transport/tcp/options.h"
#include "executor/transport/transport.h"

namespace commtune::tcp {

/// A file descriptor with an owner.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

/// Non-blocking, connected sockets by rank; this rank's own entry is empty. Throws as make_tcp_transport
/// says.
std::vector<Descriptor> connect_mesh(Transport& bootstrap, const TcpOptions& options);

}  // namespace commtune::tcp
