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

Task MessageBuffer::gather(FusionPool& pool, MemoryQueue& operations, bool await_end) {
  assert(fused());
  fusion_ = pool.take(bytes_);
  co_await copy(pool, operations, Direction::kTogether, await_end);
}

Task MessageBuffer::scatter(FusionPool& pool, MemoryQueue& operations) {
  assert(fused());
  co_await copy(pool, operations, Direction::kApart, true);
  pool.give_back(fusion_);
}

void MessageBuffer::take(FusionPool& pool) {
  assert(fused());
  fusion_ = pool.take(bytes_);
}

void MessageBuffer::give_back(FusionPool& pool) {
  assert(fused());
  pool.give_back(fusion_);
}

AsyncOperation MessageBuffer::move_parts(FusionPool& pool, MemoryQueue& operations,
                                         Direction direction) const {
  const Buffer wire = fusion_.first(bytes_);
  if (direction == Direction::kTogether)
    return codec_ ? codec_->encode(operations, wire, parts_) : operations.gather(wire, parts_);
  return codec_ ? codec_->decode(operations, parts_, wire, pool.overflows())
                : operations.scatter(parts_, wire);
}

Task MessageBuffer::copy(FusionPool& pool, MemoryQueue& operations, Direction direction, bool await_end) {
  const Clock::time_point start = Clock::now();
  AsyncOperation moving = move_parts(pool, operations, direction);
  if (await_end) co_await moving;
  pool.count_copying(Clock::now() - start);
}

}  // namespace commtune
