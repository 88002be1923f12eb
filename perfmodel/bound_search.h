#pragma once
// What searches for bounds share.

#include <limits>

namespace commtune {

inline constexpr double kBoundPrecision = 5e-4;                            ///< relative: where a search ends
inline constexpr double kNever = std::numeric_limits<double>::infinity();  ///< seconds

}  // namespace commtune
