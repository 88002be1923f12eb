#include "executor/engine/message_buffer.h"

#include <algorithm>
#include <cassert>

#include "executor/transport/transport.h"

namespace commtune {

std::vector<Buffer> stretches(const Gradients& gradients) {
  Gradients sorted = gradients;
  std::sort(sorted.begin(), sorted.end(),
            [](const Buffer& a, const Buffer& b) { return a.address < b.address; });
  std::vector<Buffer> result;
  for (const Buffer& each : sorted) {
    if (!result.empty() && result.back().address + result.back().bytes == each.address) {
      result.back().bytes += each.bytes;
    } else {
      result.push_back(each);
    }
  }
  return result;
}

MessageBuffer::MessageBuffer(const Message& message, const Gradients& gradients) {
  for (const Piece& piece : message.pieces) {
    const Buffer part = gradients[piece.tensor].part(piece.offset.count, piece.length.count);
    bytes_ += part.bytes;
    if (!parts_.empty() && parts_.back().address + parts_.back().bytes == part.address) {
      parts_.back().bytes += part.bytes;
    } else {
      parts_.push_back(part);
    }
  }
}

Task MessageBuffer::gather(FusionPool& pool, MemoryQueue& operations) {
  assert(fused());
  fusion_ = pool.take(bytes_);
  co_await copy(pool, operations, Direction::kTogether);
}

Task MessageBuffer::scatter(FusionPool& pool, MemoryQueue& operations) {
  assert(fused());
  co_await copy(pool, operations, Direction::kApart);
  pool.give_back(fusion_);
}

/// All copies are started before the first is waited for.
Task MessageBuffer::copy(FusionPool& pool, MemoryQueue& operations, Direction direction) {
  const Clock::time_point start = Clock::now();
  std::vector<AsyncOperation> under_way;  // none on the host
  std::size_t at = 0;
  for (const Buffer& part : parts_) {
    const Buffer here = fusion_.part(at, part.bytes);
    at += part.bytes;
    AsyncOperation copying =
        direction == Direction::kTogether ? operations.copy(here, part) : operations.copy(part, here);
    if (!copying.has_ended()) under_way.push_back(std::move(copying));
  }
  for (AsyncOperation& each : under_way) co_await each;
  pool.count_copying(Clock::now() - start);
}

}  // namespace commtune
