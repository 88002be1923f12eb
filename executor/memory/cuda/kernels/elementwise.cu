// Sums, scaling and casts, element by element: as the functions of executor/memory/reduce.h.

#include "executor/memory/cuda/kernels/formats.cuh"

namespace commtune::cuda {
namespace {

constexpr unsigned kPack = 8;

/// into[i] = of(into[i], from[i]), eight elements a thread where memory is aligned for it.
template <typename Into, typename From, typename Operation>
__device__ void each(Into* into, const From* from, std::uint64_t n, Operation of) {
  using IntoPack = Pack<Into, 16 / sizeof(Into)>;
  using FromPack = Pack<From, 16 / sizeof(From)>;
  std::uint64_t packed = 0;
  if (is_aligned<IntoPack>(into) && is_aligned<FromPack>(from)) {
    packed = n / kPack * kPack;
    for (std::uint64_t i = own_index() * kPack; i < packed; i += all_threads() * kPack) {
      alignas(16) Into results[kPack];
      alignas(16) From values[kPack];
#pragma unroll
      for (unsigned k = 0; k < kPack; k += 16 / sizeof(Into))
        *reinterpret_cast<IntoPack*>(results + k) = *reinterpret_cast<const IntoPack*>(into + i + k);
#pragma unroll
      for (unsigned k = 0; k < kPack; k += 16 / sizeof(From))
        *reinterpret_cast<FromPack*>(values + k) = *reinterpret_cast<const FromPack*>(from + i + k);
#pragma unroll
      for (unsigned k = 0; k < kPack; ++k) results[k] = of(results[k], values[k]);
#pragma unroll
      for (unsigned k = 0; k < kPack; k += 16 / sizeof(Into))
        *reinterpret_cast<IntoPack*>(into + i + k) = *reinterpret_cast<const IntoPack*>(results + k);
    }
  }
  for (std::uint64_t i = packed + own_index(); i < n; i += all_threads()) into[i] = of(into[i], from[i]);
}

template <typename Type>
__device__ void add(typename Type::Stored* into, const typename Type::Stored* from, std::uint64_t n) {
  using T = typename Type::Stored;
  each(into, from, n, [](T a, T b) { return Type::narrow(Type::widen(a) + Type::widen(b)); });
}

template <typename Type>
__device__ void scale(typename Type::Stored* data, std::uint64_t n, float factor) {
  using T = typename Type::Stored;
  each(data, data, n, [factor](T /*into*/, T from) { return Type::narrow(Type::widen(from) * factor); });
}

template <typename To, typename From>
__device__ void cast(typename To::Stored* into, const typename From::Stored* from, std::uint64_t n) {
  using T = typename To::Stored;
  each(into, from, n, [](T /*into*/, typename From::Stored value) { return To::narrow(From::widen(value)); });
}

}  // namespace
}  // namespace commtune::cuda

using commtune::cuda::Bfloat16;
using commtune::cuda::Float32;
using commtune::cuda::Float16;
using Bits = std::uint16_t;

extern "C" {

__global__ void commtune_add_fp32(float* into, const float* from, std::uint64_t n) {
  commtune::cuda::add<Float32>(into, from, n);
}
__global__ void commtune_add_fp16(Bits* into, const Bits* from, std::uint64_t n) {
  commtune::cuda::add<Float16>(into, from, n);
}
__global__ void commtune_add_bf16(Bits* into, const Bits* from, std::uint64_t n) {
  commtune::cuda::add<Bfloat16>(into, from, n);
}

__global__ void commtune_scale_fp32(float* data, std::uint64_t n, float factor) {
  commtune::cuda::scale<Float32>(data, n, factor);
}
__global__ void commtune_scale_fp16(Bits* data, std::uint64_t n, float factor) {
  commtune::cuda::scale<Float16>(data, n, factor);
}
__global__ void commtune_scale_bf16(Bits* data, std::uint64_t n, float factor) {
  commtune::cuda::scale<Bfloat16>(data, n, factor);
}

__global__ void commtune_cast_fp32_fp16(Bits* into, const float* from, std::uint64_t n) {
  commtune::cuda::cast<Float16, Float32>(into, from, n);
}
__global__ void commtune_cast_fp32_bf16(Bits* into, const float* from, std::uint64_t n) {
  commtune::cuda::cast<Bfloat16, Float32>(into, from, n);
}
__global__ void commtune_cast_fp16_fp32(float* into, const Bits* from, std::uint64_t n) {
  commtune::cuda::cast<Float32, Float16>(into, from, n);
}
__global__ void commtune_cast_bf16_fp32(float* into, const Bits* from, std::uint64_t n) {
  commtune::cuda::cast<Float32, Bfloat16>(into, from, n);
}
__global__ void commtune_cast_fp16_bf16(Bits* into, const Bits* from, std::uint64_t n) {
  commtune::cuda::cast<Bfloat16, Float16>(into, from, n);
}
__global__ void commtune_cast_bf16_fp16(Bits* into, const Bits* from, std::uint64_t n) {
  commtune::cuda::cast<Float16, Bfloat16>(into, from, n);
}

}  // extern "C"
