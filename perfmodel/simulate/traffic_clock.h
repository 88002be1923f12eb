#pragma once
// From the traffic's clock (Workload) to real time.

#include "perfmodel/simulate/simulate.h"

namespace commtune {

/// Every moment of the timeline, which is on the traffic's clock, as a real one: what lies before it and was
/// compute takes 1 + contention times as long. Nothing to do without contention. O(n log n).
void to_real_time(Timeline& timeline, double contention);

}  // namespace commtune
