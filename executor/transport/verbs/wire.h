#pragma once
// One of the reliable connections to a peer, as the protocol of messages (peer_connection.h) sees it: a
// card's queue pair (queue_pair.h), or a test's own. Work is done in the order in which it was posted.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "executor/transport/verbs/grants.h"

namespace commtune::verbs {

/// Memory that the card may use, as long as this lives.
struct Region {
  std::uint32_t local_key = 0, remote_key = 0;
  std::shared_ptr<const void> hold{};  ///< shared with nobody; empty where somebody else keeps it registered
};

/// Work that was posted, counted from 1. A completion of one means that all before it have ended too.
using WorkNumber = std::uint64_t;

/// Of whether a completion is wanted.
enum class Signal : bool { kNo, kYes };

class Wire {
 public:
  virtual ~Wire() = default;
  Wire() = default;
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  /// Where a frame is made, by slot, and where one has come, by the receive's.
  virtual std::span<std::byte> outgoing(std::size_t slot) = 0;
  virtual std::span<const std::byte> incoming(std::size_t slot) const = 0;

  virtual void post_receive(std::size_t slot) = 0;
  /// The first bytes of that slot.
  virtual void send(WorkNumber number, std::size_t slot, std::size_t bytes, Signal signal) = 0;
  /// address, key  of the peer's memory
  /// immediate     takes a receive at the peer and tells it; nullptr: it hears nothing
  virtual void write(WorkNumber number, std::span<const std::byte> data, std::uint32_t local_key,
                     std::uint64_t address, std::uint32_t key, const Immediate* immediate, Signal signal) = 0;

  /// Memory that the card reads, or that the peer may write. Throw Error{kUnavailable}.
  virtual Region readable(std::span<const std::byte> memory) = 0;
  virtual Region writable(std::span<std::byte> memory) = 0;
};

}  // namespace commtune::verbs
