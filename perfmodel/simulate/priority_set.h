#pragma once
// What waits by priority.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace commtune {

/// A set of priorities: small integers, of which the smallest is taken first.
class PrioritySet {
 public:
  void reset(std::size_t size) {
    const std::size_t words = (size + 63) / 64;
    words_.assign(words + 1, 0);
    words_.back() = kGuard;
    lowest_ = words;
    none_ = static_cast<std::uint32_t>(64 * words + 63);
  }
  void insert(std::uint32_t priority) {
    words_[priority / 64] |= std::uint64_t{1} << (priority % 64);
    lowest_ = std::min<std::size_t>(lowest_, priority / 64);
  }
  bool contains(std::uint32_t priority) const { return (words_[priority / 64] >> (priority % 64) & 1) != 0; }
  /// none() of an empty set.
  std::uint32_t smallest() {
    const std::uint64_t* const words = words_.data();
    std::size_t lowest = lowest_;
    while (words[lowest] == 0) ++lowest;
    lowest_ = lowest;
    return static_cast<std::uint32_t>(64 * lowest) +
           static_cast<std::uint32_t>(std::countr_zero(words[lowest]));
  }
  /// Larger than all that may be inserted.
  std::uint32_t none() const { return none_; }
  void erase(std::uint32_t priority) { words_[priority / 64] &= ~(std::uint64_t{1} << (priority % 64)); }

 private:
  static constexpr std::uint64_t kGuard = std::uint64_t{1} << 63;
  std::vector<std::uint64_t> words_;  ///< and one more, the guard, at which every search ends
  std::size_t lowest_ = 0;
  std::uint32_t none_ = 0;
};

}  // namespace commtune
