#pragma once
// The simulator's book-keeping of messages: those under way, and those that wait by priority.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace commtune {

/// What the messages started so far still have to send, against a credit: each sends its bytes evenly from
/// its start to its end, one after the other.
class Flight {
 public:
  /// most  bytes that will be added
  void clear(std::uint64_t credit, std::uint64_t most) {
    limited_ = credit < most;
    spans_.clear();
    first_ = 0;
    bytes_ = 0;
    credit_ = credit;
  }
  /// Whether anything can ever be over the credit; if not there is no need to add anything.
  bool limited() const { return limited_; }
  void add(double from, double until, std::uint64_t bytes) {
    spans_.push_back({from, until, bytes});
    bytes_ += bytes;
    while (bytes_ - spans_[first_].bytes > credit_) bytes_ -= spans_[first_++].bytes;
  }
  /// First moment at which no more than the credit is still to be sent; 0 when it was never more.
  double falls_to_credit() const {
    if (bytes_ <= credit_) return 0;
    const Span& span = spans_[first_];
    const auto left = static_cast<double>(credit_ - (bytes_ - span.bytes));
    return span.until - left / static_cast<double>(span.bytes) * (span.until - span.from);
  }

 private:
  struct Span {
    double from, until;
    std::uint64_t bytes;
  };
  std::vector<Span> spans_;
  std::size_t first_ = 0;    // the last one from which on there are more bytes than the credit
  std::uint64_t bytes_ = 0;  // from there on
  std::uint64_t credit_ = 0;
  bool limited_ = true;
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
