#pragma once
// What the simulator's networks carry.

#include <cstdint>

namespace commtune {

/// A message on its way.
struct Parcel {
  std::uint32_t number = 0;
  double bytes = 0;
  double copying = 0;  ///< time of being copied in and out of a fusion buffer
};

/// How one step went.
struct Passage {
  double from = 0, end = 0;
};

}  // namespace commtune
