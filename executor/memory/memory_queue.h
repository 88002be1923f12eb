#pragma once
// What coroutines on the communication thread await: operations on a Memory.

#include <atomic>
#include <coroutine>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "executor/base/async_operation.h"
#include "executor/memory/memory.h"
#include "executor/memory/reduce.h"

namespace commtune {

/// Operations on one memory, all started and awaited on one thread. What they mean is Memory's business; on
/// the host they have ended when the call returns, and cost no more than the function of reduce.h. Not
/// movable: operations point to it. Its destructor waits for those under way.
class MemoryQueue {
 public:
  /// wake  called from any thread when progress() has something to do; never for the host's memory
  MemoryQueue(Memory& memory, std::function<void()> wake);
  ~MemoryQueue();
  MemoryQueue(const MemoryQueue&) = delete;
  MemoryQueue& operator=(const MemoryQueue&) = delete;

  Memory& memory() const { return memory_; }

  AsyncOperation copy(Buffer into, ConstBuffer from) {
    if (!memory_.on_host()) return opened(memory_.copy(into, from));
    if (into.bytes > 0) std::memcpy(into.host().data(), from.host().data(), into.bytes);
    return {};
  }
  AsyncOperation add(DataType type, Buffer into, ConstBuffer from) {
    if (!memory_.on_host()) return opened(memory_.add(type, into, from));
    commtune::add(type, into.host(), from.host());
    return {};
  }
  AsyncOperation scale(DataType type, Buffer data, float factor) {
    if (!memory_.on_host()) return opened(memory_.scale(type, data, factor));
    commtune::scale(type, data.host(), factor);
    return {};
  }
  AsyncOperation cast(DataType into_type, Buffer into, DataType from_type, ConstBuffer from) {
    if (!memory_.on_host()) return opened(memory_.cast(into_type, into, from_type, from));
    commtune::cast(into_type, into.host(), from_type, from.host());
    return {};
  }

  AsyncOperation gather(Buffer into, std::span<const Buffer> parts) {
    return opened(memory_.gather(into, parts));
  }
  AsyncOperation scatter(std::span<const Buffer> parts, ConstBuffer from) {
    return opened(memory_.scatter(parts, from));
  }
  AsyncOperation encode(DataType into_type, Buffer into, std::span<const Buffer> parts, float factor) {
    return opened(memory_.encode(into_type, into, parts, factor));
  }
  AsyncOperation decode(std::span<const Buffer> parts, DataType from_type, ConstBuffer from,
                        std::atomic<std::uint64_t>& overflows) {
    return opened(memory_.decode(parts, from_type, from, overflows));
  }

  /// `then` is called by the progress() that notices the end, or at once where it has ended.
  void when_ended(AsyncOperation operation, std::function<void()> then) {
    under_way_.when_ended(std::move(operation), std::move(then));
  }

  /// Adds to `resumable` who awaited what has ended.
  void progress(std::vector<std::coroutine_handle<>>& resumable) {
    if (under_way_.any_under_way()) under_way_.end(memory_.ended(), resumable);
  }
  /// Returns when no operation is under way; progress() still has to note their ends.
  void drain() noexcept {
    if (under_way_.any_under_way()) memory_.drain();
  }

 private:
  AsyncOperation opened(Memory::Started started) {
    return started ? under_way_.open(*started) : AsyncOperation();
  }

  Memory& memory_;
  AsyncOperations under_way_;
};

}  // namespace commtune
