#include "executor/transport/communicator.h"

#include <fmt/format.h>

#include <algorithm>

#include "perfmodel/base/error.h"

namespace commtune {

/// A transfer of a device's memory: where it lies meanwhile.
struct Communicator::Staged {
  Staged(BufferPool& from, std::size_t bytes, Buffer to) : pool(from), block(from.take(bytes)), target(to) {}
  Staged(const Staged&) = delete;
  Staged& operator=(const Staged&) = delete;
  ~Staged() { pool.give_back(block); }

  BufferPool& pool;
  Buffer block;
  Buffer target;         // of a receive
  bool copying = false;  // of a send: it cannot be posted yet
};

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

Communicator::Communicator(Transport& transport, Memory& memory)
    : transport_(transport),
      memory_(memory),
      stage_(host_memory(), this),
      links_(static_cast<std::size_t>(transport.peers().size())),
      operations_(memory, [&transport] { transport.wake(); }) {}

Communicator::~Communicator() = default;

void Communicator::register_buffer(const Buffer& buffer) {
  memory_.register_buffer(buffer);
  if (buffer.on_host()) transport_.register_memory(buffer.host());
}

void Communicator::unregister_buffer(const Buffer& buffer) noexcept {
  if (buffer.on_host()) transport_.unregister_memory(buffer.host());
  memory_.unregister_buffer(buffer);
}

void Communicator::set_urgency(Urgency urgency) {
  urgency_ = std::move(urgency);
  sent_reduce_.assign(urgency_.reduce.size(), 0);
  sent_distribute_.assign(urgency_.distribute.size(), 0);
}

void Communicator::set_shares(std::span<const double> shares) {
  transport_.share_links(shares);
  for (std::size_t peer = 0; peer < links_.size(); ++peer) {
    links_[peer].limit = static_cast<std::size_t>(shares[peer] * static_cast<double>(kPosted));
  }
}

std::uint32_t Communicator::open(int peer, Tag tag, bool receive, Group* group) {
  const std::uint32_t index = slots_.open();
  Slot& slot = slots_[index];
  slot.state = State::kPending;
  slot.receive = receive;
  slot.peer = peer;
  slot.tag = tag;
  slot.started = Clock::now();
  slot.group = group;
  slot.waiter = {};
  if (group != nullptr) ++group->pending_;
  return index;
}

std::uint32_t Communicator::urgency_of(Tag tag) const {
  if (tag_space_of(tag) == TagSpace::kControl) return 0;
  const auto& by_number = tag_space_of(tag) == TagSpace::kReduce ? urgency_.reduce : urgency_.distribute;
  const std::uint32_t number = message_of(tag);
  return number < by_number.size() ? by_number[number] : number;
}

std::uint32_t Communicator::queue_send(int to, Tag tag, ConstBuffer data, Group* group) {
  const std::uint32_t slot = open(to, tag, false, group);
  slots_[slot].bytes = data.bytes;
  auto& queue = links_[static_cast<std::size_t>(to)].queue;
  const std::span<const std::byte> bytes = data.on_host() ? data.host() : stage_send(slot, data);
  queue.push_back({urgency_of(tag), sends_++, slot, bytes});
  std::push_heap(queue.begin(), queue.end());
  post_sends(to);
  return slot;
}

bool Communicator::Link::may_take(const Queued& next) const {
  if (urgencies.size() < 2 || posted + next.data.size() <= limit) return true;
  return next.urgency < *std::min_element(urgencies.begin(), urgencies.end());
}

void Communicator::post_sends(int to) {
  Link& link = links_[static_cast<std::size_t>(to)];
  while (!link.queue.empty()) {
    const Queued next = link.queue.front();
    const Slot& slot = slots_[next.slot];
    if (!link.may_take(next) || (slot.staged && slot.staged->copying)) return;
    std::pop_heap(link.queue.begin(), link.queue.end());
    link.queue.pop_back();
    link.posted += next.data.size();
    link.urgencies.push_back(next.urgency);
    slots_.assign(transport_.send(to, slot.tag, next.data), next.slot);
  }
}

std::uint32_t Communicator::start_receive(int from, Tag tag, Buffer data, Group* group) {
  const std::uint32_t slot = open(from, tag, true, group);
  const std::span<std::byte> bytes = data.on_host() ? data.host() : stage_receive(slot, data);
  slots_.assign(transport_.receive(from, tag, bytes), slot);
  return slot;
}

std::span<const std::byte> Communicator::stage_send(std::uint32_t slot, ConstBuffer data) {
  auto& staged = slots_[slot].staged;
  staged = std::make_unique<Staged>(stage_, data.bytes, Buffer{});
  AsyncOperation copying = operations_.copy(staged->block, data);
  staged->copying = !copying.has_ended();
  if (staged->copying) {
    operations_.when_ended(std::move(copying), [this, slot] {
      slots_[slot].staged->copying = false;
      post_sends(slots_[slot].peer);
    });
  }
  return staged->block.host();
}

std::span<std::byte> Communicator::stage_receive(std::uint32_t slot, Buffer data) {
  auto& staged = slots_[slot].staged;
  staged = std::make_unique<Staged>(stage_, data.bytes, data);
  return staged->block.host();
}

/// What has come into a block goes to where it was to be received.
void Communicator::land(std::uint32_t slot) {
  const Staged& staged = *slots_[slot].staged;
  const std::size_t bytes = slots_[slot].completion.bytes;
  operations_.when_ended(operations_.copy(staged.target.first(bytes), staged.block.first(bytes)),
                         [this, slot] { end(slot); });
}

void Communicator::close(std::uint32_t slot) noexcept {
  slots_[slot].state = State::kFree;
  slots_[slot].staged.reset();
  slots_.close(slot);
}

Transfer Communicator::send(int to, Tag tag, ConstBuffer data) {
  return {this, queue_send(to, tag, data, nullptr)};
}

void Communicator::send(int to, Tag tag, ConstBuffer data, Group& group) {
  queue_send(to, tag, data, &group);
}

Transfer Communicator::receive(int from, Tag tag, Buffer data) {
  return {this, start_receive(from, tag, data, nullptr)};
}

void Communicator::receive(int from, Tag tag, Buffer data, Group& group) {
  start_receive(from, tag, data, &group);
}

void Communicator::count_sent(const Slot& slot) {
  if (tag_space_of(slot.tag) == TagSpace::kControl) return;
  auto& sent = tag_space_of(slot.tag) == TagSpace::kReduce ? sent_reduce_ : sent_distribute_;
  const std::uint32_t number = message_of(slot.tag);
  if (number < sent.size()) sent[number] += slot.bytes;
  all_sent_ += slot.bytes;
}

std::uint64_t Communicator::sent(TagSpace space, std::uint32_t number) const {
  const auto& sent = space == TagSpace::kReduce ? sent_reduce_ : sent_distribute_;
  return number < sent.size() ? sent[number] : 0;
}

/// A send that the transport has ended makes room for the next ones.
void Communicator::unpost(const Slot& slot) {
  Link& link = links_[static_cast<std::size_t>(slot.peer)];
  count_sent(slot);
  link.posted -= slot.bytes;
  const auto ended = std::find(link.urgencies.begin(), link.urgencies.end(), urgency_of(slot.tag));
  *ended = link.urgencies.back();
  link.urgencies.pop_back();
}

void Communicator::complete(const Completion& completion) {
  const std::uint32_t index = slots_.slot_of(completion.transfer);
  Slot& slot = slots_[index];
  slot.completion = completion;
  if (!slot.receive) {
    unpost(slot);
  } else if (slot.staged) {
    return land(index);
  }
  end(index);
}

void Communicator::end(std::uint32_t index) {
  Slot& slot = slots_[index];
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
  operations_.progress(resumable_);
  for (ProgressSource* source : sources_) source->progress(resumable_);
  for (std::size_t peer = 0; peer < links_.size(); ++peer) post_sends(static_cast<int>(peer));
  for (std::size_t i = 0; i < resumable_.size(); ++i) resumable_[i].resume();
  resumable_.clear();
  return count;
}

void Communicator::run(Task task, Deadline until) {
  task.start();
  while (!task.done()) {
    if (Clock::now() >= until) {
      const auto pending = oldest();
      throw Error(
          ErrorCode::kTimeout,
          pending ? fmt::format(
                        "{}: {} {} did not end in time (channel {}, number {})", describe(peers(), rank()),
                        pending->receive ? "receiving from" : "sending to", describe(peers(), pending->peer),
                        static_cast<std::uint32_t>(tag_space_of(pending->tag)), number_of(pending->tag))
                  : fmt::format("{}: not done in time", describe(peers(), rank())));
    }
    progress(until);
  }
  task.result();
}

namespace {
/// True if this transfer says more about who is late than `best` does: a receive names the rank that has not
/// sent, while a send may only wait for a receiver that waits for others itself.
bool says_more(bool receive, Clock::time_point started, const std::optional<Pending>& best) {
  if (!best) return true;
  if (receive != best->receive) return receive;
  return started < best->started;
}
}  // namespace

std::optional<Pending> Communicator::oldest() const {
  std::optional<Pending> best;
  for (const Slot& slot : slots_) {
    if (slot.state != State::kPending || slot.tag == kStandingTag) continue;
    if (says_more(slot.receive, slot.started, best)) {
      best = Pending{slot.peer, slot.tag, slot.receive, slot.started};
    }
  }
  return best;
}

std::optional<Pending> Communicator::oldest(std::uint32_t number) const {
  std::optional<Pending> best;
  for (const Slot& slot : slots_) {
    if (slot.state != State::kPending || tag_space_of(slot.tag) == TagSpace::kControl) continue;
    if (message_of(slot.tag) == number && says_more(slot.receive, slot.started, best)) {
      best = Pending{slot.peer, slot.tag, slot.receive, slot.started};
    }
  }
  return best;
}

}  // namespace commtune
