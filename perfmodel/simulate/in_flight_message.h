#pragma once
// What the simulator's networks carry.

#include <cstdint>

namespace commtune {

/// A message that is under way.
struct InFlightMessage {
  std::uint32_t server = 0;  ///< that takes it whole, where servers do
  double bytes = 0;
  double copying = 0;  ///< seconds that copying it into a fusion buffer and back takes
};

/// When a stage of a message began and ended, in seconds from the start of the backward pass.
struct StageInterval {
  double from = 0, end = 0;
};

}  // namespace commtune
