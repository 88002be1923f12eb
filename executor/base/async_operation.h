#pragma once
// What coroutines await that something else does meanwhile: a device, a library. Whoever starts such
// operations has a table of those under way, and tells it which have ended.

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "executor/base/slot_table.h"

namespace commtune {

class AsyncOperations;

/// One operation that was started; co_await it to go on after it has ended. One that has ended when it is
/// made costs nothing: awaiting it does not suspend. Movable; who lets go of one that has not ended hears no
/// more of it, while the operation goes on.
class [[nodiscard]] AsyncOperation {
 public:
  /// Has ended.
  AsyncOperation() = default;
  AsyncOperation(AsyncOperation&& other) noexcept
      : table_(std::exchange(other.table_, nullptr)), slot_(other.slot_) {}
  AsyncOperation& operator=(AsyncOperation&& other) noexcept {
    std::swap(table_, other.table_);
    std::swap(slot_, other.slot_);
    return *this;
  }
  ~AsyncOperation() {
    if (table_ != nullptr) forget();
  }

  bool has_ended() const noexcept;

  bool await_ready() const noexcept { return has_ended(); }
  void await_suspend(std::coroutine_handle<> awaiting) const noexcept;
  void await_resume() const noexcept {}

 private:
  friend class AsyncOperations;
  AsyncOperation(AsyncOperations* table, std::uint32_t slot) : table_(table), slot_(slot) {}
  void forget() const noexcept;

  AsyncOperations* table_ = nullptr;
  std::uint32_t slot_ = 0;
};

/// Operations under way, by the number that whoever does them gave them: small, and used again after its end.
/// One thread. Not movable: operations point to it, and it outlives them.
class AsyncOperations {
 public:
  AsyncOperations() = default;
  AsyncOperations(const AsyncOperations&) = delete;
  AsyncOperations& operator=(const AsyncOperations&) = delete;

  /// `id` is under way.
  AsyncOperation open(std::uint32_t id);
  /// `then` is called by the end() of the operation, or at once where it has ended.
  void when_ended(AsyncOperation operation, std::function<void()> then);
  bool any_under_way() const { return under_way_ > 0; }

  /// These have ended: adds to `resumable` who awaited them.
  void end(std::span<const std::uint32_t> ids, std::vector<std::coroutine_handle<>>& resumable);

 private:
  friend class AsyncOperation;
  enum class State : std::uint8_t { kFree, kUnderWay, kEnded };
  struct Slot {
    State state = State::kFree;
    bool forgotten = false;
    std::coroutine_handle<> waiter;
    std::function<void()> then;
  };
  void close(std::uint32_t slot) noexcept;

  SlotTable<Slot> slots_;
  std::vector<std::function<void()>> thens_;
  std::size_t under_way_ = 0;
};

inline bool AsyncOperation::has_ended() const noexcept {
  return table_ == nullptr || table_->slots_[slot_].state == AsyncOperations::State::kEnded;
}

}  // namespace commtune
