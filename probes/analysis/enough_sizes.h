#pragma once
// When measured sizes make a curve that a plan may rest on. Pure.

#include <cstddef>

#include "perfmodel/base/units.h"

namespace commtune::probes {

/// A curve has a start-up and a time per byte at least; the third size leaves a degree of freedom, so that a
/// residual can tell how far it is off, and one of them can be left out for the others to tell it.
inline constexpr std::size_t kEnoughSizes = 3;

/// Largest over smallest size, at least: over two decades a road goes from start-up to bytes. Of sizes nearer
/// to each other one parameter is hardly anything but noise.
inline constexpr double kEnoughSpan = 100;

/// Whether so many distinct sizes say something of a curve's form, and not only of how much it is off.
inline constexpr bool are_enough(std::size_t sizes, Bytes smallest, Bytes largest) {
  return sizes >= kEnoughSizes &&
         static_cast<double>(largest.count) >= kEnoughSpan * static_cast<double>(smallest.count);
}

}  // namespace commtune::probes
