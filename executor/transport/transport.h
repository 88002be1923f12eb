#pragma once
// One rank's end of the network: the small vocabulary that roads, the engine and the probes are written in.
// Backends live in one folder each (mpi/, local/); nothing above this header knows which one it has.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace commtune {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;

/// Matches a send with its receive; messages of one (sender, tag) pair arrive in the order in which they were
/// sent.
using Tag = std::uint32_t;

/// A transfer that was started: index into the transport's own table, reused after its completion was
/// reported.
using TransferId = std::uint32_t;

/// A rank's view of the others.
struct Peers {
  int rank = 0;                    ///< this process
  std::vector<std::string> hosts;  ///< host name of each rank; its size is the number of ranks
  int size() const { return static_cast<int>(hosts.size()); }
};

/// Thread model: everything but wake() is called from one thread (the communication thread). Buffers stay
/// owned by the caller, who keeps them alive and untouched until the transfer is reported complete.
class Transport {
 public:
  virtual ~Transport() = default;
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  virtual std::string_view name() const = 0;
  virtual const Peers& peers() const = 0;

  virtual TransferId send(int to, Tag tag, std::span<const std::byte> data) = 0;
  virtual TransferId receive(int from, Tag tag, std::span<std::byte> data) = 0;

  /// Moves transfers on and returns those that have completed since the last call. Blocks, without burning
  /// the core, until there is one, or wake() was called, or the deadline has passed (then it returns an empty
  /// span). The span is valid until the next call. Throws Error{kPeerLost} naming the rank and host when a
  /// peer is gone.
  virtual std::span<const TransferId> wait(Deadline until) = 0;

  /// Ends a concurrent or the next wait() early. Callable from any thread.
  virtual void wake() noexcept = 0;

  /// The library's own all-reduce (sum of `count` elements of float32 in place), started like a transfer; the
  /// same sequence of calls on every rank. nullopt where the backend has none.
  virtual std::optional<TransferId> library_all_reduce(std::span<float> data) = 0;
};

}  // namespace commtune
