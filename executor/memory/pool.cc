#include "executor/memory/pool.h"

namespace commtune {

Scratch::Block Scratch::take() {
  if (free_.empty()) {
    storage_.emplace_back(memory_, block_bytes_, registry_);
    free_.reserve(storage_.capacity());
    free_.push_back(storage_.back().buffer());
  }
  const Buffer whole = free_.back();
  free_.pop_back();
  return {this, whole};
}

Buffer BufferPool::take(std::size_t bytes) {
  Block* best = nullptr;
  for (Block& block : blocks_) {
    const std::size_t room = block.memory.buffer().bytes;
    if (block.taken || room < bytes) continue;
    if (best == nullptr || room < best->memory.buffer().bytes) best = &block;
  }
  if (best == nullptr) {
    blocks_.push_back({Allocation(memory_, bytes, registry_)});
    best = &blocks_.back();
  }
  best->taken = true;
  return best->memory.buffer().first(bytes);
}

void BufferPool::give_back(const Buffer& buffer) noexcept {
  for (Block& block : blocks_) {
    if (block.memory.buffer().address == buffer.address) block.taken = false;
  }
}

std::size_t BufferPool::allocated() const {
  std::size_t bytes = 0;
  for (const Block& block : blocks_) bytes += block.memory.buffer().bytes;
  return bytes;
}

}  // namespace commtune
