#include "executor/base/segment.h"

#include <algorithm>

namespace commtune {

Range segment(std::size_t bytes, std::size_t element, int parts, int index) {
  const std::size_t elements = bytes / element;
  const auto p = static_cast<std::size_t>(parts);
  const auto i = static_cast<std::size_t>(index);
  const std::size_t each = elements / p;
  const std::size_t longer = elements % p;
  const std::size_t first = i * each + std::min(i, longer);
  return {first * element, (each + (i < longer ? 1 : 0)) * element};
}

}  // namespace commtune
