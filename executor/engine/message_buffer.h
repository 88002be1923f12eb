#pragma once
// Where a message's bytes lie: in the gradient itself when it is one stretch of memory, otherwise gathered
// into a fusion buffer and scattered back.

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "perfmodel/plan.h"

namespace commtune {

/// Memory of each tensor's gradient, by TensorId; its owner keeps it for as long as anything here uses it.
/// Where they lie side by side in the order in which they appear (the last tensor first), a message of
/// neighbours needs no fusion buffer (is_one_stretch), and predictions count on that.
using Gradients = std::vector<std::span<std::byte>>;

/// Fusion buffers: taken for as long as a message is under way, kept for the next one. A message gets the
/// smallest free one that is large enough. One thread.
class FusionPool {
 public:
  FusionPool() = default;
  FusionPool(const FusionPool&) = delete;
  FusionPool& operator=(const FusionPool&) = delete;

  std::span<std::byte> take(std::size_t bytes);
  /// memory  what take() returned
  void give_back(std::span<const std::byte> memory);
  std::size_t allocated() const;

  /// Time that copying between gradients and fusion buffers took so far.
  std::chrono::nanoseconds copying() const { return copying_; }
  void count_copying(std::chrono::nanoseconds time) { copying_ += time; }

 private:
  struct Block {
    std::unique_ptr<std::byte[]> memory;
    std::size_t bytes = 0;
    bool taken = false;
  };
  std::vector<Block> blocks_;
  std::chrono::nanoseconds copying_{0};
};

class MessageBuffer {
 public:
  MessageBuffer(const Message& message, const Gradients& gradients);

  std::size_t bytes() const { return bytes_; }
  /// Whether it needs a fusion buffer.
  bool fused() const { return parts_.size() > 1; }

  /// The message's bytes in one stretch, copied together if they are not. One call of gather, then one of
  /// scatter, which gives the buffer back.
  std::span<std::byte> gather(FusionPool& pool);
  void scatter(FusionPool& pool);

 private:
  std::vector<std::span<std::byte>> parts_;  // stretches of gradient memory, in the plan's order
  std::size_t bytes_ = 0;
  std::span<std::byte> fusion_;  // while it is under way
};

}  // namespace commtune
