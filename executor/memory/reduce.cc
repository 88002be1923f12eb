#include "executor/memory/reduce.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace commtune {
namespace {

using Half = std::uint16_t;

// bfloat16 is the upper half of a float32.
inline float widen_bfloat(Half h) { return std::bit_cast<float>(static_cast<std::uint32_t>(h) << 16); }

inline Half narrow_bfloat(float f) {
  const auto bits = std::bit_cast<std::uint32_t>(f);
  const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
  const std::uint32_t rounded = nan ? (bits | 0x400000u) : bits + 0x7fffu + ((bits >> 16) & 1u);
  return static_cast<Half>(rounded >> 16);
}

// IEEE binary16 without hardware: rebias the exponent by arithmetic on float32, subnormals by a magic addend.
inline float widen_half(Half h) {
  const std::uint32_t magnitude = h & 0x7fffu;
  const std::uint32_t sign = static_cast<std::uint32_t>(h & 0x8000u) << 16;
  if (magnitude >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | (magnitude << 13));
  const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(scaled));
}

inline Half narrow_half(float f) {
  const auto bits = std::bit_cast<std::uint32_t>(f);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  std::uint32_t half = 0;
  if (magnitude > 0x7f800000u) {
    half = 0x7e00u;
  } else if (magnitude >= 0x477ff000u) {  // 65520 and more round to infinity
    half = 0x7c00u;
  } else if (magnitude < 0x38800000u) {  // below 2^-14: the addend's last place is the half's
    half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  } else {
    half = (magnitude + 0xc8000fffu + ((magnitude >> 13) & 1u)) >> 13;
  }
  return static_cast<Half>(sign | half);
}

template <float (*widen)(Half), Half (*narrow)(float)>
void add_halves(Half* into, const Half* from, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) into[i] = narrow(widen(into[i]) + widen(from[i]));
}

template <float (*widen)(Half), Half (*narrow)(float)>
void scale_halves(Half* data, std::size_t n, float factor) {
  for (std::size_t i = 0; i < n; ++i) data[i] = narrow(widen(data[i]) * factor);
}

template <float (*widen)(Half)>
void widen_all(float* into, const Half* from, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) into[i] = widen(from[i]);
}

template <Half (*narrow)(float)>
void narrow_all(Half* into, const float* from, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) into[i] = narrow(from[i]);
}

template <Half (*narrow)(float)>
void scale_and_narrow(Half* into, const float* from, std::size_t n, float factor) {
  for (std::size_t i = 0; i < n; ++i) into[i] = narrow(from[i] * factor);
}

/// Bits that are all set in what is infinite or no number, and in nothing else.
constexpr Half kHalfExponent = 0x7c00, kBfloatExponent = 0x7f80;
constexpr std::uint32_t kFloatExponent = 0x7f800000;

bool any_not_finite(const Half* data, std::size_t n, Half exponent) {
  unsigned found = 0;
  for (std::size_t i = 0; i < n; ++i) found |= (data[i] & exponent) == exponent ? 1U : 0U;
  return found != 0;
}

std::uint64_t count_overflows(const float* before, const Half* now, std::size_t n, Half exponent) {
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const bool finite = (std::bit_cast<std::uint32_t>(before[i]) & kFloatExponent) != kFloatExponent;
    if (finite && (now[i] & exponent) == exponent) ++count;
  }
  return count;
}

void add_floats(float* into, const float* from, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) into[i] += from[i];
}

void scale_floats(float* data, std::size_t n, float factor) {
  for (std::size_t i = 0; i < n; ++i) data[i] *= factor;
}

#if defined(__x86_64__)

__attribute__((target("avx"))) void add_floats_avx(float* into, const float* from, std::size_t n) {
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const __m256 a = _mm256_add_ps(_mm256_loadu_ps(into + i), _mm256_loadu_ps(from + i));
    const __m256 b = _mm256_add_ps(_mm256_loadu_ps(into + i + 8), _mm256_loadu_ps(from + i + 8));
    _mm256_storeu_ps(into + i, a);
    _mm256_storeu_ps(into + i + 8, b);
  }
  add_floats(into + i, from + i, n - i);
}

// The hardware's conversions round to nearest even and keep subnormals: the same bits as the portable ones
// for all but the payload of a NaN.
__attribute__((target("avx,f16c"))) void add_halves_f16c(Half* into, const Half* from, std::size_t n) {
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    auto* at = reinterpret_cast<__m128i*>(into + i);
    const __m256 a = _mm256_cvtph_ps(_mm_loadu_si128(at));
    const __m256 b = _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
    _mm_storeu_si128(at, _mm256_cvtps_ph(_mm256_add_ps(a, b), _MM_FROUND_TO_NEAREST_INT));
  }
  add_halves<widen_half, narrow_half>(into + i, from + i, n - i);
}

__attribute__((target("avx,f16c"))) void scale_halves_f16c(Half* data, std::size_t n, float factor) {
  const __m256 factors = _mm256_set1_ps(factor);
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    auto* at = reinterpret_cast<__m128i*>(data + i);
    const __m256 a = _mm256_cvtph_ps(_mm_loadu_si128(at));
    _mm_storeu_si128(at, _mm256_cvtps_ph(_mm256_mul_ps(a, factors), _MM_FROUND_TO_NEAREST_INT));
  }
  scale_halves<widen_half, narrow_half>(data + i, n - i, factor);
}

__attribute__((target("avx,f16c"))) void widen_f16c(float* into, const Half* from, std::size_t n) {
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    _mm256_storeu_ps(into + i, _mm256_cvtph_ps(halves));
  }
  widen_all<widen_half>(into + i, from + i, n - i);
}

__attribute__((target("avx,f16c"))) void narrow_f16c(Half* into, const float* from, std::size_t n) {
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m128i halves = _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(into + i), halves);
  }
  narrow_all<narrow_half>(into + i, from + i, n - i);
}

__attribute__((target("avx,f16c"))) void scale_and_narrow_f16c(Half* into, const float* from, std::size_t n,
                                                               float factor) {
  const __m256 factors = _mm256_set1_ps(factor);
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256 scaled = _mm256_mul_ps(_mm256_loadu_ps(from + i), factors);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(into + i),
                     _mm256_cvtps_ph(scaled, _MM_FROUND_TO_NEAREST_INT));
  }
  scale_and_narrow<narrow_half>(into + i, from + i, n - i, factor);
}

#endif

/// The fastest functions that this processor has.
struct Kernels {
  decltype(&add_floats) add_float = add_floats;
  decltype(&add_halves<widen_half, narrow_half>) add_half = add_halves<widen_half, narrow_half>;
  decltype(&scale_halves<widen_half, narrow_half>) scale_half = scale_halves<widen_half, narrow_half>;
  decltype(&widen_all<widen_half>) widen = widen_all<widen_half>;
  decltype(&narrow_all<narrow_half>) narrow = narrow_all<narrow_half>;
  decltype(&scale_and_narrow<narrow_half>) encode = scale_and_narrow<narrow_half>;

  Kernels() {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx")) add_float = add_floats_avx;
    if (__builtin_cpu_supports("avx2")) {  // then there is F16C, for which not every compiler can ask
      add_half = add_halves_f16c;
      scale_half = scale_halves_f16c;
      widen = widen_f16c;
      narrow = narrow_f16c;
      encode = scale_and_narrow_f16c;
    }
#endif
  }
};

const Kernels& kernels() {
  static const Kernels chosen;
  return chosen;
}

template <typename T>
T* elements(std::span<std::byte> data) {
  return reinterpret_cast<T*>(data.data());
}
template <typename T>
const T* elements(std::span<const std::byte> data) {
  return reinterpret_cast<const T*>(data.data());
}

}  // namespace

void add(DataType type, std::span<std::byte> into, std::span<const std::byte> from) {
  assert(into.size() == from.size());
  switch (type) {
    case DataType::kFloat32:
      return kernels().add_float(elements<float>(into), elements<float>(from), into.size() / 4);
    case DataType::kFloat16:
      return kernels().add_half(elements<Half>(into), elements<Half>(from), into.size() / 2);
    case DataType::kBfloat16:
      return add_halves<widen_bfloat, narrow_bfloat>(elements<Half>(into), elements<Half>(from),
                                                     into.size() / 2);
  }
}

void scale(DataType type, std::span<std::byte> data, float factor) {
  switch (type) {
    case DataType::kFloat32:
      return scale_floats(elements<float>(data), data.size() / 4, factor);
    case DataType::kFloat16:
      return kernels().scale_half(elements<Half>(data), data.size() / 2, factor);
    case DataType::kBfloat16:
      return scale_halves<widen_bfloat, narrow_bfloat>(elements<Half>(data), data.size() / 2, factor);
  }
}

namespace {

void widen(float* into, DataType from_type, const Half* from, std::size_t n) {
  if (from_type == DataType::kFloat16) return kernels().widen(into, from, n);
  widen_all<widen_bfloat>(into, from, n);
}

void narrow(DataType into_type, Half* into, const float* from, std::size_t n) {
  if (into_type == DataType::kFloat16) return kernels().narrow(into, from, n);
  narrow_all<narrow_bfloat>(into, from, n);
}

}  // namespace

void cast(DataType into_type, std::span<std::byte> into, DataType from_type,
          std::span<const std::byte> from) {
  const std::size_t n = into.size() / element_size(into_type).count;
  assert(n == from.size() / element_size(from_type).count);
  if (into_type == from_type) {
    if (n > 0) std::memcpy(into.data(), from.data(), into.size());
  } else if (into_type == DataType::kFloat32) {
    widen(elements<float>(into), from_type, elements<Half>(from), n);
  } else if (from_type == DataType::kFloat32) {
    narrow(into_type, elements<Half>(into), elements<float>(from), n);
  } else {
    for (std::size_t i = 0; i < n; ++i) set_element(into_type, into, i, element(from_type, from, i));
  }
}

void encode(DataType into_type, std::span<std::byte> into, std::span<const std::byte> from, float factor) {
  assert(into_type != DataType::kFloat32);
  const std::size_t n = into.size() / sizeof(Half);
  assert(n == from.size() / sizeof(float));
  if (into_type == DataType::kFloat16)
    return kernels().encode(elements<Half>(into), elements<float>(from), n, factor);
  scale_and_narrow<narrow_bfloat>(elements<Half>(into), elements<float>(from), n, factor);
}

std::uint64_t decode(std::span<std::byte> into, DataType from_type, std::span<const std::byte> from) {
  assert(from_type != DataType::kFloat32);
  // So short that what is looked through is in the cache when it is widened.
  constexpr std::size_t kStretch = 4096;
  const Half exponent = from_type == DataType::kFloat16 ? kHalfExponent : kBfloatExponent;
  auto* wide = elements<float>(into);
  const auto* narrow = elements<Half>(from);
  const std::size_t all = from.size() / sizeof(Half);
  assert(all == into.size() / sizeof(float));
  std::uint64_t overflows = 0;
  for (std::size_t i = 0; i < all; i += kStretch) {
    const std::size_t n = std::min(kStretch, all - i);
    if (any_not_finite(narrow + i, n, exponent))
      overflows += count_overflows(wide + i, narrow + i, n, exponent);
    widen(wide + i, from_type, narrow + i, n);
  }
  return overflows;
}

float element(DataType type, std::span<const std::byte> data, std::size_t index) {
  switch (type) {
    case DataType::kFloat32:
      return elements<float>(data)[index];
    case DataType::kFloat16:
      return widen_half(elements<Half>(data)[index]);
    case DataType::kBfloat16:
      break;
  }
  return widen_bfloat(elements<Half>(data)[index]);
}

void set_element(DataType type, std::span<std::byte> data, std::size_t index, float value) {
  switch (type) {
    case DataType::kFloat32:
      elements<float>(data)[index] = value;
      return;
    case DataType::kFloat16:
      elements<Half>(data)[index] = narrow_half(value);
      return;
    case DataType::kBfloat16:
      elements<Half>(data)[index] = narrow_bfloat(value);
      return;
  }
}

}  // namespace commtune
