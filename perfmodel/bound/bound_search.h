#pragma once
// What searches for bounds share.

namespace commtune {

inline constexpr double kBoundPrecision = 5e-4;  ///< relative: where a search ends

}  // namespace commtune
