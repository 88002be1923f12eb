#pragma once
// What a replay puts into its gradients: small whole numbers that differ by rank, tensor, element and
// iteration. Their sums are exact in every data type in any order, so that results can be compared bit by
// bit.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "executor/roads/road.h"
#include "perfmodel/profile.h"

namespace commtune {

/// In [-3, 3]. Sums over up to 85 ranks are exact in bfloat16, over more in the wider types.
constexpr int pattern_value(int rank, std::uint32_t tensor, std::size_t element, std::uint64_t iteration) {
  std::uint32_t h = static_cast<std::uint32_t>(element) * 2654435761U + tensor * 40503U +
                    static_cast<std::uint32_t>(rank) * 2246822519U +
                    static_cast<std::uint32_t>(iteration) * 3266489917U;
  h ^= h >> 15;
  h *= 2246822519U;
  h ^= h >> 13;
  return static_cast<int>(((h >> 16) * 7U) >> 16) - 3;
}

/// What element `element` is after its sum or mean over ranks 0..workers-1: the serial reference.
float pattern_result(int workers, Result result, DataType type, std::uint32_t tensor, std::size_t element,
                     std::uint64_t iteration);

/// Fills a whole tensor, with so many times the pattern.
void fill(std::span<std::byte> gradient, DataType type, int rank, std::uint32_t tensor,
          std::uint64_t iteration, int times = 1);

/// First element of the tensor that is not the reference's; nullopt when all are.
std::optional<std::size_t> first_wrong(std::span<const std::byte> gradient, DataType type, int workers,
                                       Result result, std::uint32_t tensor, std::uint64_t iteration);

}  // namespace commtune
