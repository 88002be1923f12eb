#pragma once
// Random numbers that are the same on every machine for the same seed, which std's distributions are not.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <random>

namespace commtune {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  double uniform() { return (static_cast<double>(engine_() >> 11) + 0.5) * 0x1p-53; }  ///< in (0, 1)

  /// 0..n-1, evenly but for a part of n / 2^53.
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(uniform() * static_cast<double>(n)); }

  /// Normal with mean 0 and standard deviation 1. Source: Box and Muller (1958).
  double normal() {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace commtune
