#pragma once
// The simulator's book-keeping of messages: those under way, and those that wait by priority.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace commtune {

/// Messages under way, by the time at which they end.
class Flight {
 public:
  void clear() {
    ends_.clear();
    head_ = 0;
    bytes_ = 0;
  }
  bool empty() const { return head_ == ends_.size(); }
  double first_end() const { return ends_[head_].at; }
  bool fits(std::uint64_t own, std::uint64_t credit) const {
    return empty() || (bytes_ <= credit && own <= credit - bytes_);
  }
  void add(double end, std::uint64_t own) {
    ends_.push_back({end, own});
    // Almost sorted already: a message seldom overtakes another.
    for (std::size_t i = ends_.size() - 1; i > head_ && ends_[i - 1].at > ends_[i].at; --i) {
      std::swap(ends_[i - 1], ends_[i]);
    }
    bytes_ += own;
  }
  void retire(double now) {
    while (!empty() && ends_[head_].at <= now) bytes_ -= ends_[head_++].bytes;
  }

 private:
  struct End {
    double at;
    std::uint64_t bytes;
  };
  std::vector<End> ends_;
  std::size_t head_ = 0;
  std::uint64_t bytes_ = 0;
};

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
    while (lowest_ < words_.size() && words_[lowest_] == 0) ++lowest_;
    return lowest_ == words_.size();
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
