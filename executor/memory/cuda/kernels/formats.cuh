#pragma once
// Elements of gradients in the kernels' registers: float32, and the short types that are widened to it.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace commtune::cuda {

struct Float32 {
  using Stored = float;
  static constexpr std::uint32_t kExponent = 0x7f800000U;
  __device__ static float widen(float value) { return value; }
  __device__ static float narrow(float value) { return value; }
};

struct Float16 {
  using Stored = std::uint16_t;
  static constexpr std::uint32_t kExponent = 0x7c00U;  ///< all set in what is infinite or no number
  __device__ static float widen(Stored value) { return __half2float(__ushort_as_half(value)); }
  __device__ static Stored narrow(float value) { return __half_as_ushort(__float2half_rn(value)); }
};

struct Bfloat16 {
  using Stored = std::uint16_t;
  static constexpr std::uint32_t kExponent = 0x7f80U;
  __device__ static float widen(Stored value) { return __uint_as_float(static_cast<std::uint32_t>(value) << 16U); }
  __device__ static Stored narrow(float value) { return __bfloat16_as_ushort(__float2bfloat16_rn(value)); }
};

/// So many elements are read or written by one instruction where memory is aligned for it.
template <typename T, unsigned n>
struct Pack {
  alignas(sizeof(T) * n) T element[n];
};

template <typename T>
__device__ bool is_aligned(const void* address) {
  return reinterpret_cast<std::uint64_t>(address) % alignof(T) == 0;
}

/// This thread among all of the launch, and how many there are.
__device__ inline std::uint64_t own_index() { return std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; }
__device__ inline std::uint64_t all_threads() { return std::uint64_t{gridDim.x} * blockDim.x; }

}  // namespace commtune::cuda
