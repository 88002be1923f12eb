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

inline constexpr std::size_t kMostEnds = 4096;  ///< in one report, and messages of one stream

}  // namespace commtune::probes
