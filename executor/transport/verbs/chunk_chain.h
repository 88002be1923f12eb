#pragma once
// A long message as a chain of writes into the receiver's memory. The last one carries an immediate: the
// receiver hears of the whole chain once, when all of it is there, as writes of a connection arrive in order.

#include <algorithm>
#include <cassert>
#include <cstdint>

namespace commtune::verbs {

class ChunkChain {
 public:
  struct Write {
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
    bool last = false;
  };

  /// size, chunk  in bytes, from 1
  ChunkChain(std::uint64_t size, std::uint64_t chunk) : size_(size), chunk_(chunk) {
    assert(size > 0 && chunk > 0);
  }

  bool is_done() const { return written_ == size_; }
  /// The next write. There is one.
  Write next() const {
    const std::uint64_t length = std::min(chunk_, size_ - written_);
    return {written_, length, written_ + length == size_};
  }
  void advance() { written_ += next().length; }

 private:
  std::uint64_t size_, chunk_;
  std::uint64_t written_ = 0;
};

}  // namespace commtune::verbs
