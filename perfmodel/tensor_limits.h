#pragma once
// What profiles and plans may name: bounds that keep every sum of bytes within 64 bits.

#include <cstdint>

namespace commtune {

inline constexpr std::uint64_t kMostTensors = 1'000'000;                 ///< of a profile
inline constexpr std::uint64_t kLargestTensor = std::uint64_t{1} << 40;  ///< bytes

}  // namespace commtune
