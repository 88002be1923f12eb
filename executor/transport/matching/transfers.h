#pragma once
// The transfers of one rank by number, queues of them, and which have ended.

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "executor/transport/transport.h"

namespace commtune::matching {

inline constexpr TransferId kNoTransfer = ~TransferId{0};

/// What precedes each message on the wire. All ranks run the same program on the same kind of processor.
struct Envelope {
  std::uint64_t size = 0;
  Tag tag = 0;
  std::uint32_t reserved = 0;
};

struct Transfer {
  std::byte* data = nullptr;  // a send only reads it
  std::size_t done = 0;       // of a send: bytes of envelope and data that the kernel has taken
  Envelope envelope;          // of a receive: its tag, and its room as size
  TransferId next = kNoTransfer;
};

/// Transfers in the order in which they were started, linked through Transfer::next.
struct Queue {
  TransferId first = kNoTransfer, last = kNoTransfer;
  bool empty() const { return first == kNoTransfer; }
};

/// Whether a message with the tag `sent` may go to a receive with the tag `receive`.
bool fits(Tag receive, Tag sent);

class Transfers {
 public:
  TransferId open(std::byte* data, std::size_t size, Tag tag);
  Transfer& operator[](TransferId id) { return all_[id]; }
  const Transfer& operator[](TransferId id) const { return all_[id]; }

  void append(Queue& queue, TransferId id);
  TransferId pop_front(Queue& queue);
  /// The first of the queue that a message with this tag fits, now out of it, or kNoTransfer.
  TransferId take(Queue& queue, Tag sent);

  void complete(TransferId id, const Envelope& message) {
    completed_.push_back({id, message.tag, message.size});
  }
  bool any_completed() const { return !completed_.empty(); }
  /// What has been completed since the last report; valid, like the numbers in it, until release_reported().
  std::span<const Completion> report();
  void release_reported();

 private:
  std::vector<Transfer> all_;  // by TransferId
  TransferId free_ = kNoTransfer;
  std::vector<Completion> completed_, reported_;
};

}  // namespace commtune::matching
