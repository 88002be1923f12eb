#pragma once
// Receives posted ahead: the transfers that a rank will take from one peer, in order, a window of them at a
// time, so that data never waits for a receive to be posted.

#include <array>
#include <cassert>
#include <cstddef>
#include <utility>

#include "executor/roads/road.h"

namespace commtune {

inline constexpr int kMaxWindow = 16;

/// First in, first out, at most kMaxWindow; lives inside a coroutine's frame and allocates nothing.
/// T holds a Transfer and whatever belongs to it.
template <typename T>
class Window {
 public:
  explicit Window(int limit) : limit_(static_cast<std::size_t>(limit)) {
    assert(limit >= 1 && limit <= kMaxWindow);
  }

  bool full() const { return count_ == limit_; }
  bool empty() const { return count_ == 0; }
  void push(T item) { items_[(first_ + count_++) % kMaxWindow] = std::move(item); }
  T pop() {
    T item = std::move(items_[first_]);
    first_ = (first_ + 1) % kMaxWindow;
    --count_;
    return item;
  }

 private:
  const std::size_t limit_;
  std::array<T, kMaxWindow> items_{};
  std::size_t first_ = 0, count_ = 0;
};

}  // namespace commtune
