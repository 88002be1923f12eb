#pragma once
// The transfers of one rank by number, queues of them, and which have ended. What each message passes is
// inline.

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "executor/transport/matching/early_memory.h"
#include "executor/transport/transport.h"

namespace commtune::matching {

inline constexpr TransferId kNoTransfer = ~TransferId{0};

/// What a message says of itself before its bytes. Has no padding: a transport may send it as it lies in
/// memory, as all ranks run the same program on the same kind of processor.
struct Envelope {
  std::uint64_t size = 0;
  Tag tag = 0;
  std::uint32_t reserved = 0;
};
static_assert(sizeof(Envelope) == 16);

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

class Transfers {
 public:
  TransferId open(std::byte* data, std::size_t size, Tag tag) {
    TransferId id = free_;
    if (id == kNoTransfer) {
      id = static_cast<TransferId>(all_.size());
      all_.emplace_back();
    } else {
      free_ = all_[id].next;
    }
    all_[id] = Transfer{data, 0, Envelope{size, tag, 0}, kNoTransfer};
    return id;
  }
  Transfer& operator[](TransferId id) { return all_[id]; }
  const Transfer& operator[](TransferId id) const { return all_[id]; }

  void append(Queue& queue, TransferId id) {
    (queue.empty() ? queue.first : all_[queue.last].next) = id;
    queue.last = id;
  }
  TransferId pop_front(Queue& queue) { return unlink_after(queue, kNoTransfer); }
  /// Takes out what follows `before` in the queue, or its first where that is kNoTransfer. There is one.
  TransferId unlink_after(Queue& queue, TransferId before) {
    TransferId& link = before == kNoTransfer ? queue.first : all_[before].next;
    const TransferId id = link;
    link = all_[id].next;
    if (queue.last == id) queue.last = before;
    all_[id].next = kNoTransfer;
    return id;
  }

  void complete(TransferId id, const Envelope& message) {
    completed_.push_back({id, message.tag, message.size});
  }
  bool any_completed() const { return !completed_.empty(); }
  /// Something of a plan's message has come that no receive takes yet.
  void note_early() { early_ = true; }
  /// Whether one has since this was last asked.
  bool take_early() { return std::exchange(early_, false); }
  /// What has been completed since the last report; valid, like the numbers in it, until release_reported().
  std::span<const Completion> report() {
    std::swap(completed_, reported_);
    return reported_;
  }
  /// For what comes early.
  EarlyMemory& early_memory() { return early_memory_; }
  void release_reported() {
    for (const Completion& completion : reported_) {
      all_[completion.transfer].next = free_;
      free_ = completion.transfer;
    }
    reported_.clear();
  }

 private:
  std::vector<Transfer> all_;  // by TransferId
  TransferId free_ = kNoTransfer;
  std::vector<Completion> completed_, reported_;
  bool early_ = false;
  EarlyMemory early_memory_;
};

}  // namespace commtune::matching
