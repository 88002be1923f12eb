#include "probes/compute/cuda/gpu_math.h"

#include <algorithm>
#include <bit>

namespace commtune::compute {

std::uint64_t argument_of(float value) { return std::bit_cast<std::uint32_t>(value); }

std::uint32_t blocks_for(std::int64_t threads, std::uint32_t block) {
  // Kernels go on by the size of their grid: 16 blocks for each of 132 multiprocessors (H100) are more than
  // are resident anywhere today.
  constexpr std::int64_t kMost = std::int64_t{16} * 132;
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>((threads + block - 1) / block, 1, kMost));
}

}  // namespace commtune::compute
