#pragma once
// Where a message's bytes lie: in the gradient itself when it is one stretch of memory, otherwise gathered
// into a fusion buffer and scattered back.

#include <cstddef>
#include <span>
#include <vector>

#include "executor/roads/road.h"
#include "perfmodel/plan.h"

namespace commtune {

/// Memory of each tensor's gradient, by TensorId; its owner keeps it for as long as anything here uses it.
using Gradients = std::vector<std::span<std::byte>>;

class MessageBuffer {
 public:
  MessageBuffer(const Message& message, const Gradients& gradients);

  std::size_t bytes() const { return bytes_; }
  /// Whether it needs a fusion buffer.
  bool fused() const { return parts_.size() > 1; }

  /// The message's bytes in one stretch, copied together if they are not. One call of gather, then one of
  /// scatter, which gives the buffer back.
  std::span<std::byte> gather(Scratch& fusion);
  void scatter();

 private:
  std::vector<std::span<std::byte>> parts_;  // stretches of gradient memory, in the plan's order
  std::size_t bytes_ = 0;
  Scratch::Block block_;
};

}  // namespace commtune
