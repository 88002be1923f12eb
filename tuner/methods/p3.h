#pragma once
// P3: priority-based parameter propagation (Jayarajan et al., MLSys 2019).

#include "tuner/planning.h"

namespace commtune::tuner {

/// P3's slice: 50,000 parameters.
inline constexpr std::uint64_t kSliceParameters = 50'000;

/// Tensors cut into slices, the slice of the lowest layer first, one at a time so that an urgent one never
/// waits for more than one other, a barrier per layer. Servers that take messages whole get the slices in
/// turn, as P3's store deals them out.
Plan p3(const Planning& job, const RoadOption& option);

}  // namespace commtune::tuner
