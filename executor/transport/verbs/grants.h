#pragma once
// What a receiver has let a peer write into its memory: for each such message a slot and the slot's sequence
// number, which come back as the immediate of the write that ends it, or that ends its part on each of
// several connections. A slot is used again, its sequence is another then, so that an immediate that comes
// twice or late ends nothing.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

#include "executor/transport/matching/transfers.h"

namespace commtune::verbs {

/// 16 bits of slot, 16 bits of sequence.
using Immediate = std::uint32_t;

/// Some of a pair's connections, a bit each.
using ConnectionSet = std::uint8_t;
inline constexpr std::size_t kMostConnections = 8;

/// Region  what keeps the memory registered while the peer may write there
template <typename Region>
class Grants {
 public:
  struct Granted {
    TransferId receive = matching::kNoTransfer;
    matching::Envelope message{};
    Region region{};
    ConnectionSet due = 1;  ///< connections that have not told of their part's end
  };
  static constexpr std::size_t kMost = std::size_t{1} << 16;

  bool is_full() const { return free_.empty() && slots_.size() == kMost; }
  bool empty() const { return free_.size() == slots_.size(); }
  std::size_t open_count() const { return slots_.size() - free_.size(); }

  /// There is room.
  Immediate open(Granted granted) {
    std::uint32_t index = 0;
    if (free_.empty()) {
      index = static_cast<std::uint32_t>(slots_.size());
      slots_.emplace_back();
    } else {
      index = free_.back();
      free_.pop_back();
    }
    Slot& slot = slots_[index];
    slot.granted.emplace(std::move(granted));
    return (index << 16) | slot.sequence;
  }

  struct GrantEnd {
    bool was_granted = false;          ///< of that number, and on that connection
    std::optional<Granted> message{};  ///< with its last part
  };
  /// The peer's writes of one connection have ended.
  GrantEnd close(Immediate immediate, std::size_t connection = 0) {
    const std::uint32_t index = immediate >> 16;
    const ConnectionSet bit = static_cast<ConnectionSet>(1U << connection);
    if (index >= slots_.size()) return {};
    Slot& slot = slots_[index];
    if (!slot.granted || slot.sequence != (immediate & 0xffff) || (slot.granted->due & bit) == 0) return {};
    slot.granted->due &= static_cast<ConnectionSet>(~bit);
    if (slot.granted->due != 0) return {true, std::nullopt};
    GrantEnd closed{true, std::move(slot.granted)};
    slot.granted.reset();
    slot.sequence = (slot.sequence + 1) & 0xffff;
    free_.push_back(index);
    return closed;
  }

  /// One of those that are open, for a message that says what is waited for. There is one.
  const Granted& any() const {
    for (const Slot& slot : slots_)
      if (slot.granted) return *slot.granted;
    std::abort();
  }

 private:
  struct Slot {
    std::uint32_t sequence = 0;
    std::optional<Granted> granted;
  };
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
};

}  // namespace commtune::verbs
