#pragma once
// The moment of an event that never happens.

#include <limits>

namespace commtune {

inline constexpr double kNever = std::numeric_limits<double>::infinity();  ///< seconds

}  // namespace commtune
