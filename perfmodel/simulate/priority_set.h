#pragma once
// What waits by priority.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace commtune {

/// A set of priorities: small integers, of which the smallest is taken first. Two levels of bits: one for
/// each priority, and one for each 64 of these that says whether there are any, so that where a few of many
/// priorities wait nobody looks through all.
class PrioritySet {
 public:
  void reset(std::size_t size) {
    const std::size_t words = size / kBits + 1;  // the last has room for none()
    words_.assign(words, 0);
    in_use_.assign(words / kBits + 1, 0);
    smallest_ = none_ = static_cast<std::uint32_t>(kBits * words - 1);
    insert(none_);
  }
  void insert(std::uint32_t priority) {
    const std::uint32_t word = priority / kBits;
    words_[word] |= bit(priority);
    in_use_[word / kBits] |= bit(word);
    smallest_ = std::min(smallest_, priority);
  }
  bool contains(std::uint32_t priority) const { return (words_[priority / kBits] & bit(priority)) != 0; }
  /// none() of an empty set.
  std::uint32_t smallest() const { return smallest_; }
  /// Larger than all that may be inserted.
  std::uint32_t none() const { return none_; }
  void erase(std::uint32_t priority) {
    const std::uint32_t word = priority / kBits;
    words_[word] &= ~bit(priority);
    if (words_[word] == 0) in_use_[word / kBits] &= ~bit(word);
    if (priority == smallest_) smallest_ = first_from(word);
  }

 private:
  static constexpr std::uint32_t kBits = 64;
  static std::uint64_t bit(std::uint32_t at) { return std::uint64_t{1} << (at % kBits); }
  static std::uint32_t lowest(std::uint64_t word) {
    return static_cast<std::uint32_t>(std::countr_zero(word));
  }

  /// The smallest priority where none is in a word before this one.
  std::uint32_t first_from(std::uint32_t word) const {
    if (words_[word] == 0) {
      std::uint32_t group = word / kBits;
      while (in_use_[group] == 0) ++group;
      word = kBits * group + lowest(in_use_[group]);
    }
    return kBits * word + lowest(words_[word]);
  }

  std::vector<std::uint64_t> words_;   ///< and none(), at which every search ends
  std::vector<std::uint64_t> in_use_;  ///< by word: whether a bit of it is set
  std::uint32_t none_ = 0, smallest_ = 0;
};

}  // namespace commtune
