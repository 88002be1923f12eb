#pragma once
// Sockets between the processes of a communicator of the stand-in's NCCL: bytes to and from several peers at
// once.

#include <poll.h>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

namespace commtune::standin {

/// A peer has gone, or the communicator was aborted.
class MeshBroken : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Mesh {
 public:
  Mesh(std::string name, int rank, int ranks);
  ~Mesh();
  Mesh(const Mesh&) = delete;
  Mesh& operator=(const Mesh&) = delete;

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }

  /// All ranks, each in a thread of its own or a process of its own; waits for all.
  void connect();

  struct Bytes {
    int peer = 0;
    std::byte* address = nullptr;  ///< of what is sent, it is read only
    std::size_t bytes = 0;
  };
  /// Comes back when all has left and come; with one peer in the order of the list.
  void exchange(std::vector<Bytes> sends, std::vector<Bytes> receives);

  /// From any thread: what is under way, and all that follows, throws MeshBroken.
  void abort();
  /// Waits until abort() was called.
  void wait_for_abort();

 private:
  std::string name_of(int rank) const;
  int listen_here() const;
  int connect_to(int peer);
  void accept_from(int listener, int count);
  void poll_for(std::vector<pollfd>& watched);

  const std::string name_;
  const int rank_, ranks_;
  int aborted_ = -1;          // an event: readable once abort() was called
  std::vector<int> sockets_;  // by peer
};

}  // namespace commtune::standin
