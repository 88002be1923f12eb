#pragma once
// What can be done with buffers of one kind of memory. A device's memory is a folder here with a class that
// says how (cuda/); roads, pools and the engine know no more of it than this.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "executor/memory/buffer.h"
#include "perfmodel/profile.h"

namespace commtune {

/// An operation that was started: index into the memory's own table, reused after its end was reported.
/// Small: a caller may keep a table indexed by it.
using MemoryOperationId = std::uint32_t;

/// Operations either have ended when the call returns, as the host's always do (nullopt), or end later, in
/// any order, with an entry in ended(): on a GPU, with an event behind what was put on a stream. Until then
/// what they read stays as it is and nobody uses what they write. An operation starts when it is asked for:
/// what it reads is complete by then, so that those under way need no order among each other, unless the
/// memory is in_order().
///
/// Coroutines await operations through a MemoryQueue, of which a memory has one at a time.
///
/// Thread model: one call at a time, but for what wake_with() gave, which comes from any thread.
class Memory {
 public:
  virtual ~Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  virtual std::string_view name() const = 0;  ///< "host", "cuda:0"
  Device device() const { return device_; }
  bool on_host() const { return device_ == Device::kHost; }
  /// Whether operations take effect in the order in which they are started, as on a stream, so that one may
  /// be started on what another has not written yet.
  virtual bool in_order() const { return on_host(); }

  /// At least one byte, for elements of every type. Throws Error{kUnavailable} naming memory and size where
  /// there is not so much left.
  virtual Buffer allocate(std::size_t bytes) = 0;
  /// What allocate() returned. Waits for the operations under way that use it.
  virtual void release(const Buffer& buffer) noexcept = 0;

  /// A buffer whose bytes will travel again and again, whoever allocated it, until unregister_buffer(): for a
  /// driver that copies faster from memory which it knows (pinned pages).
  virtual void register_buffer(const Buffer& buffer) { static_cast<void>(buffer); }
  virtual void unregister_buffer(const Buffer& buffer) noexcept { static_cast<void>(buffer); }

  using Started = std::optional<MemoryOperationId>;
  /// Of equal sizes that do not overlap; one of the two may lie on the host.
  virtual Started copy(Buffer into, ConstBuffer from) = 0;
  /// As the functions of these names in reduce.h, to the bit; all buffers are of this memory.
  virtual Started add(DataType type, Buffer into, ConstBuffer from) = 0;
  virtual Started scale(DataType type, Buffer data, float factor) = 0;
  virtual Started cast(DataType into_type, Buffer into, DataType from_type, ConstBuffer from) = 0;
  /// Parts of this memory, one after the other, in one stretch of it; and back. The list is read by the call.
  virtual Started gather(Buffer into, std::span<const Buffer> parts) = 0;
  virtual Started scatter(std::span<const Buffer> parts, ConstBuffer from) = 0;
  /// The same with parts of float32, by reduce.h's functions of these names.
  virtual Started encode(DataType into_type, Buffer into, std::span<const Buffer> parts, float factor) = 0;
  /// overflows  what is added to it has been added at the end; several may add to one
  virtual Started decode(std::span<const Buffer> parts, DataType from_type, ConstBuffer from,
                         std::atomic<std::uint64_t>& overflows) = 0;

  /// What has ended since the last call; never blocks. Valid until the next call. Throws Error{kUnavailable}
  /// naming the memory where an operation failed.
  virtual std::span<const MemoryOperationId> ended() = 0;
  /// From now on `wake` is called, from any thread, whenever ended() has something to say; an empty one: no
  /// longer, nor is the one before still being called when this returns.
  virtual void wake_with(std::function<void()> wake) = 0;
  /// Returns when all operations have ended, which ended() still reports.
  virtual void drain() noexcept = 0;

 protected:
  explicit Memory(Device device) : device_(device) {}

 private:
  const Device device_;
};

/// What has to be told of memory before it travels, and once for as long as it does: cards that read it
/// themselves, drivers.
class BufferRegistry {
 public:
  virtual ~BufferRegistry() = default;
  BufferRegistry() = default;
  BufferRegistry(const BufferRegistry&) = delete;
  BufferRegistry& operator=(const BufferRegistry&) = delete;

  virtual void register_buffer(const Buffer& buffer) = 0;
  virtual void unregister_buffer(const Buffer& buffer) noexcept = 0;
};

}  // namespace commtune
