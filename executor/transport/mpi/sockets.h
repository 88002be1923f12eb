#pragma once
// The library's sockets, seen from outside of it: Open MPI has no call that names them.

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

namespace commtune {

/// Tells the connections that a library has made since it started from all other sockets of this process.
///
/// A connection between ranks of Open MPI has at one end the port at which that rank's library listens since
/// it started. So one is the library's if it was not there before the start and its own end is at a port at
/// which this process has come to listen, or its far end at one that another rank named. The socket of
/// another thread is mistaken for it only if it is opened while the library starts, and leads to or from such
/// a port.
class LibrarySockets {
 public:
  /// Notes the sockets that there are before the library starts.
  LibrarySockets();

  /// Ports at which this process has come to listen since then.
  std::vector<std::uint16_t> listening() const;

  /// Lets the kernel hold no more than `bytes` unsent on each of the library's connections. What it holds can
  /// no longer be overtaken, so that a deep buffer would undo the order in which messages use a link. Errors
  /// are ignored: the order is then as good as the system's own buffers allow.
  ///
  /// own, others  what listening() said on this rank and on all others when the library had started
  void limit_unsent(std::size_t bytes, std::span<const std::uint16_t> own,
                    std::span<const std::uint16_t> others) const;

 private:
  std::vector<int> new_sockets() const;

  std::set<ino_t> before_;
};

}  // namespace commtune
