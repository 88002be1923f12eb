#pragma once
// Memory of messages that came before their receives, used again by others.

#include <cstddef>
#include <vector>

namespace commtune::matching {

/// Of one rank, whoever its messages come from. The system's memory would have to be cleared and mapped page
/// by page, which takes longer than to copy a message into it. From one thread at a time.
class EarlyMemory {
 public:
  /// So many bytes, whatever they hold. What was given last, and is still in the caches, goes first.
  std::vector<std::byte> take(std::size_t bytes);
  void give(std::vector<std::byte> memory);

 private:
  std::vector<std::vector<std::byte>> spare_;
};

}  // namespace commtune::matching
