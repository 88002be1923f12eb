#include "executor/message_buffer.h"

#include <cstring>

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

std::span<std::byte> MessageBuffer::gather(Scratch& fusion) {
  if (!fused()) return parts_.front();
  block_ = fusion.take();
  std::byte* at = block_.bytes(bytes_).data();
  for (const std::span<std::byte> part : parts_) {
    std::memcpy(at, part.data(), part.size());
    at += part.size();
  }
  return block_.bytes(bytes_);
}

void MessageBuffer::scatter() {
  if (!fused()) return;
  const std::byte* at = block_.bytes(bytes_).data();
  for (const std::span<std::byte> part : parts_) {
    std::memcpy(part.data(), at, part.size());
    at += part.size();
  }
  block_ = {};
}

}  // namespace commtune
