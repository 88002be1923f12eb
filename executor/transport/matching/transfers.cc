#include "executor/transport/matching/transfers.h"

namespace commtune::matching {

bool fits(Tag receive, Tag sent) {
  return receive == sent || (number_of(receive) == kAnyNumber && tag_space_of(receive) == tag_space_of(sent));
}

TransferId Transfers::open(std::byte* data, std::size_t size, Tag tag) {
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

void Transfers::append(Queue& queue, TransferId id) {
  (queue.empty() ? queue.first : all_[queue.last].next) = id;
  queue.last = id;
}

TransferId Transfers::pop_front(Queue& queue) {
  const TransferId id = queue.first;
  queue.first = all_[id].next;
  if (queue.empty()) queue.last = kNoTransfer;
  all_[id].next = kNoTransfer;
  return id;
}

TransferId Transfers::take(Queue& queue, Tag sent) {
  TransferId before = kNoTransfer;
  for (TransferId id = queue.first; id != kNoTransfer; before = id, id = all_[id].next) {
    if (!fits(all_[id].envelope.tag, sent)) continue;
    if (before == kNoTransfer) return pop_front(queue);
    all_[before].next = all_[id].next;
    if (queue.last == id) queue.last = before;
    all_[id].next = kNoTransfer;
    return id;
  }
  return kNoTransfer;
}

std::span<const Completion> Transfers::report() {
  std::swap(completed_, reported_);
  return reported_;
}

void Transfers::release_reported() {
  for (const Completion& completion : reported_) {
    all_[completion.transfer].next = free_;
    free_ = completion.transfer;
  }
  reported_.clear();
}

}  // namespace commtune::matching
