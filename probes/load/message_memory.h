#pragma once
// What the messages of a measurement carry: ones, in memory that is as cold as a model's gradients are.

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "executor/memory/memory_queue.h"
#include "executor/memory/pool.h"

namespace commtune::probes {

/// Where the messages of a slot lie, one after the other.
enum class Places {
  kOne,  ///< all in the same place: in the caches after the first
  kAll,  ///< each in the next place of the slot's share of the memory: gone from the caches when it comes
         ///< again
};

/// Memory of one rank, the host's or a GPU's, laid out anew for each command. A slot is for one message at a
/// time.
class MessageMemory {
 public:
  /// operations  on the memory that it is taken from; outlive this
  /// bytes       of it all, touched here, so that no measurement waits for pages
  MessageMemory(MemoryQueue& operations, std::size_t bytes);

  /// Slots for so many messages in all, each of so many bytes (at least one element). Grows the memory if it
  /// is too small. Places go on where the layout before ended.
  void lay_out(std::size_t slots, std::size_t messages, std::size_t message_bytes, Places places);

  /// Where a slot's message lies, by how many passed through the slot before it.
  Buffer place(std::size_t slot, std::size_t passed = 0);

  struct Wrong {
    std::size_t element;
    float value;
  };
  /// Of the first and the last element of each place that messages of this layout had, one that is not one.
  std::optional<Wrong> first_wrong();

  /// Writes ones to each place that messages of this layout had, and to no other: while one rank writes, the
  /// messages of others may still be on their way.
  void refill();

 private:
  std::size_t offset_of(std::size_t slot, std::size_t passed) const;
  /// Of ones, so many bytes.
  void grow(std::size_t bytes);
  void write_ones(const Buffer& into);

  MemoryQueue& operations_;
  std::optional<Allocation> memory_;
  std::vector<float> ones_;           ///< what is written, a stretch at a time
  std::vector<std::size_t> touched_;  ///< by slot: places that messages had
  std::size_t message_bytes_ = 0;
  std::size_t step_ = 0;    ///< from a place to the next, bytes
  std::size_t places_ = 0;  ///< of each slot
  std::size_t first_ = 0;   ///< of them: where the first message lies
  std::size_t cursor_ = 0;  ///< bytes of each slot's share that layouts have gone through
};

}  // namespace commtune::probes
