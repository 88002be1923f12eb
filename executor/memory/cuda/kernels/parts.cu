// Many parts of memory to and from one stretch in one launch. The wire is cut into turns of equal length,
// whatever lies in them, which blocks take one after the other: a large tensor keeps no block longer than a
// small one.

#include "executor/memory/cuda/kernels/formats.cuh"
#include "executor/memory/cuda/kernels/parts.h"

namespace commtune::cuda {
namespace {

/// The part in which this place of the wire lies.
__device__ unsigned part_at(const Parts& parts, std::uint64_t place) {
  unsigned first = 0;
  unsigned last = parts.count;
  while (last - first > 1) {
    const unsigned middle = (first + last) / 2;
    if (parts.begin[middle] <= place) {
      first = middle;
    } else {
      last = middle;
    }
  }
  return first;
}

/// Calls each(part, offset in it, place on the wire, length) for every piece of this block's turns.
template <typename Each>
__device__ void for_own_pieces(const Parts& parts, std::uint32_t turn, Each each) {
  const std::uint64_t wire_begin = parts.begin[0];
  const std::uint64_t wire_end = parts.begin[parts.count];
  for (std::uint64_t at = wire_begin + std::uint64_t{blockIdx.x} * turn; at < wire_end;
       at += std::uint64_t{gridDim.x} * turn) {
    const std::uint64_t end = at + turn < wire_end ? at + turn : wire_end;
    unsigned part = part_at(parts, at);
    for (std::uint64_t place = at; place < end; ++part) {
      const std::uint64_t part_end = parts.begin[part + 1] < end ? parts.begin[part + 1] : end;
      if (part_end > place) each(part, place - parts.begin[part], place, part_end - place);
      place = part_end;
    }
  }
}

/// So many loads of a thread are under way before the first is stored.
constexpr unsigned kInFlight = 4;

/// All threads of the block copy n elements, of one alignment.
template <typename T>
__device__ void copy_elements(T* into, const T* from, std::uint64_t n) {
  std::uint64_t i = threadIdx.x;
  for (; i + (kInFlight - 1) * blockDim.x < n; i += kInFlight * blockDim.x) {
    T values[kInFlight];
#pragma unroll
    for (unsigned k = 0; k < kInFlight; ++k) values[k] = from[i + k * blockDim.x];
#pragma unroll
    for (unsigned k = 0; k < kInFlight; ++k) into[i + k * blockDim.x] = values[k];
  }
  for (; i < n; i += blockDim.x) into[i] = from[i];
}

/// Bytes, in as wide words as both addresses allow: up to the first such word and behind the last one by one.
template <typename Word>
__device__ bool copy_as(unsigned char* into, const unsigned char* from, std::uint64_t n) {
  const auto to = reinterpret_cast<std::uint64_t>(into);
  if ((to - reinterpret_cast<std::uint64_t>(from)) % sizeof(Word) != 0) return false;
  std::uint64_t head = (sizeof(Word) - to % sizeof(Word)) % sizeof(Word);
  if (head > n) head = n;
  copy_elements(into, from, head);
  const std::uint64_t words = (n - head) / sizeof(Word);
  copy_elements(reinterpret_cast<Word*>(into + head), reinterpret_cast<const Word*>(from + head), words);
  const std::uint64_t done = head + words * sizeof(Word);
  copy_elements(into + done, from + done, n - done);
  return true;
}

__device__ void copy_bytes(unsigned char* into, const unsigned char* from, std::uint64_t n) {
  if (copy_as<uint4>(into, from, n)) return;
  if (copy_as<std::uint32_t>(into, from, n)) return;
  if (copy_as<std::uint16_t>(into, from, n)) return;
  copy_elements(into, from, n);
}

constexpr unsigned kPack = 4;
using FloatPack = Pack<float, kPack>;

template <typename Type>
__device__ void encode_piece(typename Type::Stored* wire, const float* from, std::uint64_t n, float factor) {
  using WirePack = Pack<typename Type::Stored, kPack>;
  std::uint64_t packed = 0;
  if (is_aligned<FloatPack>(from) && is_aligned<WirePack>(wire)) {
    packed = n / kPack * kPack;
    for (std::uint64_t i = std::uint64_t{threadIdx.x} * kPack; i < packed; i += blockDim.x * kPack) {
      const FloatPack values = *reinterpret_cast<const FloatPack*>(from + i);
      WirePack results;
#pragma unroll
      for (unsigned k = 0; k < kPack; ++k) results.element[k] = Type::narrow(values.element[k] * factor);
      *reinterpret_cast<WirePack*>(wire + i) = results;
    }
  }
  for (std::uint64_t i = packed + threadIdx.x; i < n; i += blockDim.x) wire[i] = Type::narrow(from[i] * factor);
}

/// Returns how many elements overflowed that this thread decoded: see reduce.h.
template <typename Type>
__device__ unsigned decode_element(float& into, typename Type::Stored value) {
  const bool was_finite = (__float_as_uint(into) & Float32::kExponent) != Float32::kExponent;
  into = Type::widen(value);
  return was_finite && (value & Type::kExponent) == Type::kExponent ? 1U : 0U;
}

template <typename Type>
__device__ unsigned decode_piece(float* into, const typename Type::Stored* wire, std::uint64_t n) {
  using WirePack = Pack<typename Type::Stored, kPack>;
  unsigned overflows = 0;
  std::uint64_t packed = 0;
  if (is_aligned<FloatPack>(into) && is_aligned<WirePack>(wire)) {
    packed = n / kPack * kPack;
    for (std::uint64_t i = std::uint64_t{threadIdx.x} * kPack; i < packed; i += blockDim.x * kPack) {
      const WirePack values = *reinterpret_cast<const WirePack*>(wire + i);
      FloatPack results = *reinterpret_cast<const FloatPack*>(into + i);
#pragma unroll
      for (unsigned k = 0; k < kPack; ++k)
        overflows += decode_element<Type>(results.element[k], values.element[k]);
      *reinterpret_cast<FloatPack*>(into + i) = results;
    }
  }
  for (std::uint64_t i = packed + threadIdx.x; i < n; i += blockDim.x)
    overflows += decode_element<Type>(into[i], wire[i]);
  return overflows;
}

template <typename Type>
__device__ void encode(const Parts& parts, typename Type::Stored* wire, float factor) {
  for_own_pieces(parts, kElementsOfATurn,
                 [&](unsigned part, std::uint64_t offset, std::uint64_t place, std::uint64_t n) {
                   const auto* from = reinterpret_cast<const float*>(parts.address[part]) + offset;
                   encode_piece<Type>(wire + place, from, n, factor);
                 });
}

template <typename Type>
__device__ void decode(const Parts& parts, const typename Type::Stored* wire, unsigned long long* overflows) {
  unsigned own = 0;
  for_own_pieces(parts, kElementsOfATurn,
                 [&](unsigned part, std::uint64_t offset, std::uint64_t place, std::uint64_t n) {
                   auto* into = reinterpret_cast<float*>(parts.address[part]) + offset;
                   own += decode_piece<Type>(into, wire + place, n);
                 });
  if (own != 0) atomicAdd(overflows, static_cast<unsigned long long>(own));
}

}  // namespace
}  // namespace commtune::cuda

using commtune::cuda::Bfloat16;
using commtune::cuda::Float16;
using commtune::cuda::Parts;
using Bits = std::uint16_t;

extern "C" {

__global__ void commtune_gather(const __grid_constant__ Parts parts, unsigned char* wire) {
  commtune::cuda::for_own_pieces(parts, commtune::cuda::kBytesOfATurn,
                                 [&](unsigned part, std::uint64_t offset, std::uint64_t place, std::uint64_t n) {
                                   const auto* from = reinterpret_cast<const unsigned char*>(parts.address[part]);
                                   commtune::cuda::copy_bytes(wire + place, from + offset, n);
                                 });
}
__global__ void commtune_scatter(const __grid_constant__ Parts parts, const unsigned char* wire) {
  commtune::cuda::for_own_pieces(parts, commtune::cuda::kBytesOfATurn,
                                 [&](unsigned part, std::uint64_t offset, std::uint64_t place, std::uint64_t n) {
                                   auto* into = reinterpret_cast<unsigned char*>(parts.address[part]);
                                   commtune::cuda::copy_bytes(into + offset, wire + place, n);
                                 });
}

__global__ void commtune_encode_fp16(const __grid_constant__ Parts parts, Bits* wire, float factor) {
  commtune::cuda::encode<Float16>(parts, wire, factor);
}
__global__ void commtune_encode_bf16(const __grid_constant__ Parts parts, Bits* wire, float factor) {
  commtune::cuda::encode<Bfloat16>(parts, wire, factor);
}
__global__ void commtune_decode_fp16(const __grid_constant__ Parts parts, const Bits* wire,
                                     unsigned long long* overflows) {
  commtune::cuda::decode<Float16>(parts, wire, overflows);
}
__global__ void commtune_decode_bf16(const __grid_constant__ Parts parts, const Bits* wire,
                                     unsigned long long* overflows) {
  commtune::cuda::decode<Bfloat16>(parts, wire, overflows);
}

}  // extern "C"
