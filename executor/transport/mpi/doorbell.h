#pragma once
// Wakes ranks of the same host. Between them Open MPI moves data through shared memory, which no descriptor
// tells about; so whoever has put something there for a rank rings its bell, a datagram socket that it may
// sleep on. A bell that is not heard costs a little time, never correctness: every sleep is bounded.

#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <string>
#include <vector>

namespace commtune {

class Doorbell {
 public:
  /// Opens this process's bell, in the abstract namespace: nothing is left in the file system. Its name is
  /// random, so that nobody can have taken it before. throws Error{kUnavailable}.
  Doorbell();
  ~Doorbell();
  Doorbell(const Doorbell&) = delete;
  Doorbell& operator=(const Doorbell&) = delete;

  /// What others ring; at most kNameLength characters.
  const std::string& name() const { return name_; }
  static constexpr std::size_t kNameLength = 48;

  /// Readable when somebody has rung. Any process of this host may: it costs us a look, no more.
  int descriptor() const { return socket_; }
  /// Forgets what was rung; returns although somebody goes on ringing.
  void silence() noexcept;

  /// Bells of the ranks of this host by rank; empty names: ranks that are never rung.
  void set_peers(const std::vector<std::string>& names);
  void ring(int rank) noexcept;

 private:
  struct Peer {
    sockaddr_un address{};
    socklen_t length = 0;
  };
  int socket_ = -1;
  std::string name_;
  std::vector<Peer> peers_;
};

}  // namespace commtune
