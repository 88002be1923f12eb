#pragma once
// The moments that ranks report: their unit and clock, and how many of them one report holds.

#include <chrono>
#include <cstddef>

namespace commtune::probes {

using Nanoseconds = std::chrono::nanoseconds;  ///< since the epoch of some rank's steady clock

/// On this rank's steady clock.
inline Nanoseconds now() {
  return std::chrono::duration_cast<Nanoseconds>(std::chrono::steady_clock::now().time_since_epoch());
}

/// Moments in one report (32 KiB of them), and messages of one stream. The longest that is asked for
/// (stream_shape.h) has 256 + 2048.
inline constexpr std::size_t kMostEnds = 4096;

}  // namespace commtune::probes
