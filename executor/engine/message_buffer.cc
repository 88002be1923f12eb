#include "executor/engine/message_buffer.h"

#include <cstring>

#include "executor/transport/transport.h"

namespace commtune {

MessageBuffer::MessageBuffer(const Message& message, const Gradients& gradients) {
  for (const Piece& piece : message.pieces) {
    const std::span<std::byte> part = gradients[piece.tensor].subspan(piece.offset.count, piece.length.count);
    bytes_ += part.size();
    if (!parts_.empty() && parts_.back().data() + parts_.back().size() == part.data()) {
      parts_.back() = {parts_.back().data(), parts_.back().size() + part.size()};
    } else {
      parts_.push_back(part);
    }
  }
}

std::span<std::byte> MessageBuffer::gather(FusionPool& pool) {
  if (!fused()) return parts_.front();
  fusion_ = pool.take(bytes_);
  const Clock::time_point start = Clock::now();
  std::byte* at = fusion_.data();
  for (const std::span<std::byte> part : parts_) {
    std::memcpy(at, part.data(), part.size());
    at += part.size();
  }
  pool.count_copying(Clock::now() - start);
  return fusion_;
}

void MessageBuffer::scatter(FusionPool& pool) {
  if (!fused()) return;
  const Clock::time_point start = Clock::now();
  const std::byte* at = fusion_.data();
  for (const std::span<std::byte> part : parts_) {
    std::memcpy(part.data(), at, part.size());
    at += part.size();
  }
  pool.count_copying(Clock::now() - start);
  pool.give_back(fusion_);
}

std::span<std::byte> FusionPool::take(std::size_t bytes) {
  Block* best = nullptr;
  for (Block& block : blocks_) {
    if (block.taken || block.bytes < bytes) continue;
    if (best == nullptr || block.bytes < best->bytes) best = &block;
  }
  if (best == nullptr) {
    blocks_.push_back({std::make_unique_for_overwrite<std::byte[]>(bytes), bytes, false});
    best = &blocks_.back();
  }
  best->taken = true;
  return {best->memory.get(), bytes};
}

void FusionPool::give_back(std::span<const std::byte> memory) {
  for (Block& block : blocks_) {
    if (block.memory.get() == memory.data()) block.taken = false;
  }
}

std::size_t FusionPool::allocated() const {
  std::size_t bytes = 0;
  for (const Block& block : blocks_) bytes += block.bytes;
  return bytes;
}

}  // namespace commtune
