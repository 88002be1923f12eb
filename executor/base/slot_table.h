#pragma once
// What is known of operations under way while something else carries them out: a transport, a device, a
// library.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace commtune {

/// A slot for each, used again after its end. Whoever carries operations out names them by numbers (ids) that
/// are small and used again earlier than slots are: as soon as an end is reported, which may be before
/// anybody has looked at it. One thread.
template <typename Slot>
class SlotTable {
 public:
  /// returns  the number of a free slot, which is as its last user left it
  std::uint32_t open() {
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(slots_.size()));
      slots_.emplace_back();
      free_.reserve(slots_.capacity());
    }
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    return slot;
  }
  void close(std::uint32_t slot) noexcept { free_.push_back(slot); }  // within what open() reserved

  /// The operation of this slot is under way under this id.
  void assign(std::uint32_t id, std::uint32_t slot) {
    if (id >= slot_of_.size()) slot_of_.resize(std::size_t{id} + 1);
    slot_of_[id] = slot;
  }
  /// The slot that the id was last assigned to.
  std::uint32_t slot_of(std::uint32_t id) const { return slot_of_[id]; }

  Slot& operator[](std::uint32_t slot) { return slots_[slot]; }
  const Slot& operator[](std::uint32_t slot) const { return slots_[slot]; }
  /// All that there ever were at once, free ones too.
  auto begin() const { return slots_.begin(); }
  auto end() const { return slots_.end(); }

 private:
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> slot_of_;  // by id
};

}  // namespace commtune
