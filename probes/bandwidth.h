#pragma once
// Bandwidths as people compare them. algbw = bytes / time. busbw = algbw times what makes it comparable with
// the speed of a link, as nccl-tests defines it: all-reduce 2(n-1)/n, reduce-scatter and all-gather (n-1)/n.
// For parameter servers nobody has agreed on one: ours is bytes through the busiest card, in its busier
// direction, per second; stated with workers, servers and placement.

#include "perfmodel/cluster.h"
#include "perfmodel/units.h"

namespace commtune::probes {

/// Bytes per second, one direction.
struct Bandwidth {
  double algorithm = 0, bus = 0;
};

/// busbw / algbw. One rank per host is assumed for servers.
double bus_factor(const Road& road, Operation operation, int workers);

/// Of a message of `size` that takes `time`.
Bandwidth bandwidth(const Road& road, Operation operation, int workers, Bytes size, Seconds time);

}  // namespace commtune::probes
