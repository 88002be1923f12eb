#pragma once
// Where a message's bytes lie: in the gradient itself when it is one stretch of memory and travels as it is,
// otherwise gathered into a fusion buffer, through a codec where the plan has one, and scattered back.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "executor/base/task.h"
#include "executor/codec/codec.h"
#include "executor/memory/memory_queue.h"
#include "executor/memory/pool.h"
#include "perfmodel/plan.h"

namespace commtune {

/// Memory of each tensor's gradient, by TensorId, all of one kind; its owner keeps it for as long as anything
/// here uses it. Where they lie side by side in the order in which they appear (the last tensor first), a
/// message of neighbours needs no fusion buffer (is_one_stretch), and predictions count on that.
using Gradients = std::vector<Buffer>;

/// The stretches of memory that gradients make where they lie side by side.
std::vector<Buffer> stretches(const Gradients& gradients);

/// Fusion buffers, in bytes on the wire: taken for as long as a message is under way, kept for the next one.
/// One thread.
class FusionPool : public BufferPool {
 public:
  using BufferPool::BufferPool;

  /// Time that copying between gradients and fusion buffers took so far.
  std::chrono::nanoseconds copying() const { return copying_; }
  void count_copying(std::chrono::nanoseconds time) { copying_ += time; }
  /// Elements whose sum overflowed so far (Codec::decode).
  std::atomic<std::uint64_t>& overflows() { return overflows_; }

 private:
  std::chrono::nanoseconds copying_{0};
  std::atomic<std::uint64_t> overflows_{0};
};

class MessageBuffer {
 public:
  /// codec  of gradients of float32; nullopt: they travel as they are
  MessageBuffer(const Message& message, const Gradients& gradients, std::optional<Codec> codec = {});

  /// On the wire.
  std::size_t bytes() const { return bytes_; }
  /// Whether it needs a fusion buffer.
  bool fused() const { return parts_.size() > 1 || codec_; }

  /// Where its bytes lie in one stretch: from the end of gather() to that of scatter() where it is fused.
  const Buffer& data() const { return fused() ? fusion_ : parts_.front(); }

  /// Copies the message's bytes together, into a buffer that scatter() gives back after copying them apart.
  /// In turn, and only where it is fused.
  ///
  /// await_end  false: comes back when the copying has been started, since whoever uses the bytes is ordered
  ///            behind it (Memory::in_order())
  Task gather(FusionPool& pool, MemoryQueue& operations, bool await_end = true);
  Task scatter(FusionPool& pool, MemoryQueue& operations);
  /// The buffer alone, of a message that only goes or only comes back: in place of gather(), of scatter().
  void take(FusionPool& pool);
  void give_back(FusionPool& pool);

 private:
  enum class Direction { kTogether, kApart };
  Task copy(FusionPool& pool, MemoryQueue& operations, Direction direction, bool await_end);
  AsyncOperation move_parts(FusionPool& pool, MemoryQueue& operations, Direction direction) const;
  std::size_t on_wire(std::size_t gradients) const {
    return codec_ ? codec_->wire_bytes(gradients) : gradients;
  }

  std::optional<Codec> codec_;
  std::vector<Buffer> parts_;  // stretches of gradient memory, in the plan's order
  std::size_t bytes_ = 0;
  Buffer fusion_;  // while it is under way
};

}  // namespace commtune
