#pragma once
// How bytes are cut into parts of whole elements.

#include <cstddef>

namespace commtune {

/// Half-open range of bytes.
struct Range {
  std::size_t offset = 0, length = 0;
  std::size_t end() const { return offset + length; }
};

/// Part `index` of `parts` of a message of `bytes`, on element boundaries; may be empty for tiny messages.
Range segment(std::size_t bytes, std::size_t element, int parts, int index);

}  // namespace commtune
