#pragma once
// The time of what does not happen.

#include <limits>

namespace commtune {

inline constexpr double kNever = std::numeric_limits<double>::infinity();  ///< seconds

}  // namespace commtune
