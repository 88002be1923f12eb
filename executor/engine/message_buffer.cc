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

MessageBuffer::MessageBuffer(const Message& message, const Gradients& gradients, std::optional<Codec> codec)
    : codec_(codec) {
  for (const Piece& piece : message.pieces) {
    const Buffer part = gradients[piece.tensor].part(piece.offset.count, piece.length.count);
    bytes_ += on_wire(part.bytes);
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

AsyncOperation MessageBuffer::move_part(FusionPool& pool, MemoryQueue& operations, Direction direction,
                                        const Buffer& gradient, const Buffer& wire) const {
  if (direction == Direction::kTogether)
    return codec_ ? codec_->encode(operations, wire, gradient) : operations.copy(wire, gradient);
  return codec_ ? codec_->decode(operations, gradient, wire, pool.overflows())
                : operations.copy(gradient, wire);
}

/// All copies are started before the first is waited for.
Task MessageBuffer::copy(FusionPool& pool, MemoryQueue& operations, Direction direction) {
  const Clock::time_point start = Clock::now();
  std::vector<AsyncOperation> under_way;  // none on the host
  std::size_t at = 0;
  for (const Buffer& part : parts_) {
    const Buffer here = fusion_.part(at, on_wire(part.bytes));
    at += here.bytes;
    AsyncOperation moving = move_part(pool, operations, direction, part, here);
    if (!moving.has_ended()) under_way.push_back(std::move(moving));
  }
  for (AsyncOperation& each : under_way) co_await each;
  pool.count_copying(Clock::now() - start);
}

}  // namespace commtune
