#pragma once
// Which memory a card has been told of. Telling takes the kernel's work for every page, so memory that is
// used again and again should be told of once, by whoever owns it; what nobody has told of is registered for
// each transfer and forgotten after it. Nothing is kept by address alone: the allocator may give an address
// that was freed to other pages, and the card would go on writing to the old ones.

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>

#include "executor/transport/verbs/device.h"
#include "executor/transport/verbs/library.h"
#include "executor/transport/verbs/wire.h"

namespace commtune::verbs {

class Regions {
 public:
  /// device   outlives this
  /// relaxed  whether messages may be written in any order (VerbsOptions::relaxed_ordering)
  Regions(const Device& device, bool relaxed);

  /// Of frames, which are written in order: more than one may come before they are looked at. Throws
  /// Error{kUnavailable}.
  Region frames(std::span<std::byte> memory) const;
  /// Of a transfer: what was registered around it, or the memory by itself. Throw Error{kUnavailable}.
  Region readable(std::span<const std::byte> memory) const;
  Region writable(std::span<std::byte> memory) const;

  /// Registers memory until release() with the same beginning. Throws Error{kUnavailable}.
  void keep(std::span<std::byte> memory);
  /// No transfer uses it any more.
  void release(std::span<std::byte> memory) noexcept;

  /// Registrations so far: by keep(), and for a transfer each.
  std::uint64_t kept_count() const { return kept_count_; }
  std::uint64_t passing_count() const { return passing_count_; }

 private:
  const ibv_mr* find(std::span<const std::byte> memory) const;
  Region make_passing(std::span<const std::byte> memory, int access) const;
  Owned<ibv_mr> make(std::span<const std::byte> memory, int access) const;

  const Device& device_;
  int peer_writes_;
  std::map<const std::byte*, Owned<ibv_mr>> kept_;  // by beginning
  std::uint64_t kept_count_ = 0;
  mutable std::uint64_t passing_count_ = 0;
};

}  // namespace commtune::verbs
