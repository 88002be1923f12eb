#pragma once
// How gradients are written on the wire where they do not travel as they are: cast to a shorter type.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "executor/memory/memory_queue.h"
#include "perfmodel/plan.h"
#include "perfmodel/profile.h"

namespace commtune {

/// Gradients of float32 that travel in a shorter type. Each element is multiplied by `factor` in float32 and
/// rounded to `type`, the road sums in that type at each hop, and the sum is widened to float32.
///
/// A mean is divided before it is summed: roads only sum, and of finite gradients that `type` has room for no
/// sum is infinite.
struct Codec {
  DataType type = DataType::kBfloat16;
  float factor = 1;  ///< for a mean, 1 / workers

  /// Of so many bytes of gradients, which are whole elements.
  std::size_t wire_bytes(std::size_t gradients) const;

  /// As Memory's, from gradients to the wire and back.
  AsyncOperation encode(MemoryQueue& operations, Buffer wire, std::span<const Buffer> gradients) const {
    return operations.encode(type, wire, gradients, factor);
  }
  /// overflows  has one added for each element whose sum is infinite or no number while this rank's own
  ///            gradient was finite
  AsyncOperation decode(MemoryQueue& operations, std::span<const Buffer> gradients, ConstBuffer wire,
                        std::atomic<std::uint64_t>& overflows) const {
    return operations.decode(gradients, type, wire, overflows);
  }
};

/// nullopt where gradients travel as they are.
///
/// divided_by  the number of workers for a mean, 1 for a sum
std::optional<Codec> codec_of(WireFormat wire, int divided_by);

}  // namespace commtune
