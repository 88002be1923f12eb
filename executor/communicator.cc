#include "executor/communicator.h"

#include <fmt/format.h>

#include "perfmodel/error.h"

namespace commtune {

bool Transfer::await_ready() const noexcept {
  return communicator_->slots_[slot_].state == Communicator::State::kDone;
}

void Transfer::await_suspend(std::coroutine_handle<> awaiting) const noexcept {
  communicator_->slots_[slot_].waiter = awaiting;
}

Completion Transfer::await_resume() const noexcept {
  const Completion completion = communicator_->slots_[slot_].completion;
  communicator_->close(slot_);
  return completion;
}

std::uint32_t Communicator::open(TransferId id, int peer, Tag tag, bool receive, Group* group) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(slots_.size()));
    slots_.emplace_back();
    free_.reserve(slots_.capacity());
  }
  const std::uint32_t index = free_.back();
  free_.pop_back();
  Slot& slot = slots_[index];
  slot.state = State::kPending;
  slot.receive = receive;
  slot.peer = peer;
  slot.tag = tag;
  slot.started = Clock::now();
  slot.group = group;
  slot.waiter = {};
  if (group != nullptr) ++group->pending_;
  if (id >= slot_of_.size()) slot_of_.resize(id + 1);
  slot_of_[id] = index;
  return index;
}

void Communicator::close(std::uint32_t slot) noexcept {
  slots_[slot].state = State::kFree;
  free_.push_back(slot);  // within the capacity that open() reserved
}

Transfer Communicator::send(int to, Tag tag, std::span<const std::byte> data) {
  return {this, open(transport_.send(to, tag, data), to, tag, false, nullptr)};
}

Transfer Communicator::receive(int from, Tag tag, std::span<std::byte> data) {
  return {this, open(transport_.receive(from, tag, data), from, tag, true, nullptr)};
}

void Communicator::send(int to, Tag tag, std::span<const std::byte> data, Group& group) {
  open(transport_.send(to, tag, data), to, tag, false, &group);
}

void Communicator::receive(int from, Tag tag, std::span<std::byte> data, Group& group) {
  open(transport_.receive(from, tag, data), from, tag, true, &group);
}

std::optional<Transfer> Communicator::library_all_reduce(int ranks, DataType type,
                                                         std::span<std::byte> data) {
  const auto id = transport_.library_all_reduce(ranks, type, data);
  if (!id) return std::nullopt;
  return Transfer{this, open(*id, rank(), 0, false, nullptr)};
}

void Communicator::complete(const Completion& completion) {
  const std::uint32_t index = slot_of_[completion.transfer];
  Slot& slot = slots_[index];
  slot.completion = completion;
  if (slot.group != nullptr) {
    Group& group = *slot.group;
    close(index);
    if (--group.pending_ == 0 && group.waiter_) resumable_.push_back(std::exchange(group.waiter_, {}));
    return;
  }
  slot.state = State::kDone;
  if (slot.waiter) resumable_.push_back(slot.waiter);
}

std::size_t Communicator::progress(Deadline until) {
  const std::span<const Completion> completed = transport_.wait(until);
  const std::size_t count = completed.size();
  // First note them all, then resume: what a coroutine starts may reuse an id of this very span.
  for (const Completion& completion : completed) complete(completion);
  for (std::size_t i = 0; i < resumable_.size(); ++i) resumable_[i].resume();
  resumable_.clear();
  return count;
}

void Communicator::run(Task task, Deadline until) {
  task.start();
  while (!task.done()) {
    if (Clock::now() >= until) {
      const auto pending = oldest();
      throw Error(ErrorCode::kTimeout,
                  pending ? fmt::format("{}: {} {} did not end in time", describe(peers(), rank()),
                                        pending->receive ? "receiving from" : "sending to",
                                        describe(peers(), pending->peer))
                          : fmt::format("{}: not done in time", describe(peers(), rank())));
    }
    progress(until);
  }
  task.result();
}

namespace {
/// Receives say more about who is late than sends do.
bool says_more(bool receive, Clock::time_point started, const std::optional<Pending>& best) {
  if (!best) return true;
  if (receive != best->receive) return receive;
  return started < best->started;
}
}  // namespace

std::optional<Pending> Communicator::oldest() const {
  std::optional<Pending> best;
  for (const Slot& slot : slots_) {
    if (slot.state == State::kPending && says_more(slot.receive, slot.started, best)) {
      best = Pending{slot.peer, slot.tag, slot.receive, slot.started};
    }
  }
  return best;
}

std::optional<Pending> Communicator::oldest(std::uint32_t number) const {
  std::optional<Pending> best;
  for (const Slot& slot : slots_) {
    if (slot.state != State::kPending || channel_of(slot.tag) == Channel::kControl) continue;
    if (number_of(slot.tag) == number && says_more(slot.receive, slot.started, best)) {
      best = Pending{slot.peer, slot.tag, slot.receive, slot.started};
    }
  }
  return best;
}

}  // namespace commtune
