#include "executor/replay/pattern.h"

#include <array>
#include <optional>

#include "executor/memory/reduce.h"

namespace commtune {

float pattern_result(int workers, Result result, DataType type, std::uint32_t tensor,
                     std::size_t element_index, std::uint64_t iteration) {
  int sum = 0;
  for (int rank = 0; rank < workers; ++rank) sum += pattern_value(rank, tensor, element_index, iteration);
  std::array<std::byte, sizeof(float)> memory{};
  const std::span<std::byte> one = std::span(memory).first(element_size(type).count);
  set_element(type, one, 0, static_cast<float>(sum));
  if (result == Result::kMean) scale(type, one, 1.0F / static_cast<float>(workers));
  return element(type, one, 0);
}

void fill(std::span<std::byte> gradient, DataType type, int rank, std::uint32_t tensor,
          std::uint64_t iteration, int times) {
  const std::size_t count = gradient.size() / element_size(type).count;
  for (std::size_t i = 0; i < count; ++i) {
    set_element(type, gradient, i, static_cast<float>(times * pattern_value(rank, tensor, i, iteration)));
  }
}

std::optional<std::size_t> first_wrong(std::span<const std::byte> gradient, DataType type, int workers,
                                       Result result, std::uint32_t tensor, std::uint64_t iteration) {
  const std::size_t count = gradient.size() / element_size(type).count;
  for (std::size_t i = 0; i < count; ++i) {
    if (element(type, gradient, i) != pattern_result(workers, result, type, tensor, i, iteration)) return i;
  }
  return std::nullopt;
}

}  // namespace commtune
