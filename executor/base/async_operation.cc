#include "executor/base/async_operation.h"

namespace commtune {

void AsyncOperation::await_suspend(std::coroutine_handle<> awaiting) const noexcept {
  table_->slots_[slot_].waiter = awaiting;
}

void AsyncOperation::forget() const noexcept {
  AsyncOperations::Slot& slot = table_->slots_[slot_];
  if (slot.state == AsyncOperations::State::kEnded) {
    table_->close(slot_);
  } else {
    slot.forgotten = true;
    slot.waiter = {};
  }
}

AsyncOperation AsyncOperations::open(std::uint32_t id) {
  const std::uint32_t index = slots_.open();
  slots_.assign(id, index);
  slots_[index] = {State::kUnderWay, false, {}, {}};
  ++under_way_;
  return {this, index};
}

void AsyncOperations::close(std::uint32_t slot) noexcept {
  slots_[slot].state = State::kFree;
  slots_.close(slot);
}

void AsyncOperations::when_ended(AsyncOperation operation, std::function<void()> then) {
  if (operation.has_ended()) return then();
  slots_[operation.slot_].then = std::move(then);  // that the operation is let go of changes nothing for it
}

void AsyncOperations::end(std::span<const std::uint32_t> ids,
                          std::vector<std::coroutine_handle<>>& resumable) {
  // First note them all, then call: what is called may start operations under a number of this very list.
  for (const std::uint32_t id : ids) {
    const std::uint32_t index = slots_.slot_of(id);
    Slot& slot = slots_[index];
    slot.state = State::kEnded;
    --under_way_;
    if (slot.waiter) resumable.push_back(std::exchange(slot.waiter, {}));
    if (slot.then) thens_.push_back(std::exchange(slot.then, nullptr));
    if (slot.forgotten) close(index);
  }
  for (const std::function<void()>& then : std::exchange(thens_, {})) then();
}

}  // namespace commtune
