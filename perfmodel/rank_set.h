#pragma once
// What waits by priority.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace commtune {

/// Small integers of which the smallest is taken first.
class RankSet {
 public:
  void reset(std::size_t size) {
    words_.assign((size + 63) / 64, 0);
    lowest_ = words_.size();
  }
  void insert(std::uint32_t rank) {
    words_[rank / 64] |= std::uint64_t{1} << (rank % 64);
    lowest_ = std::min<std::size_t>(lowest_, rank / 64);
  }
  bool empty() {
    const std::uint64_t* const words = words_.data();
    const std::size_t size = words_.size();
    std::size_t lowest = lowest_;
    while (lowest < size && words[lowest] == 0) ++lowest;
    lowest_ = lowest;
    return lowest == size;
  }
  /// Not empty.
  std::uint32_t smallest() const {
    return static_cast<std::uint32_t>(lowest_ * 64 +
                                      static_cast<std::size_t>(std::countr_zero(words_[lowest_])));
  }
  void erase(std::uint32_t rank) { words_[rank / 64] &= ~(std::uint64_t{1} << (rank % 64)); }

 private:
  std::vector<std::uint64_t> words_;
  std::size_t lowest_ = 0;
};

}  // namespace commtune
