#pragma once
// Ring all-reduce (Patarasuk and Yuan, J. Parallel Distrib. Comput. 69, 2009), pipelined in chunks.
//
// The message is cut into N segments. Reduce, step s = 0..N-2: rank r sends segment r-s to its right
// neighbour and adds what comes from the left to segment r-s-1; after N-1 steps it owns the sum of segment
// r+1. Distribute, step s = 0..N-2: rank r sends segment r+1-s on and takes segment r-s. (Indices modulo N.)
//
// Each rank sends and receives 2(N-1) segments of m/N bytes: 2(N-1)/N m in each direction, in 2(N-1) steps.
// A chunk goes on as soon as it is summed, so that with segments longer than (latency / time per byte) the
// link never idles and the latency of only the first chunk of each step is not hidden. The all-reduce lets
// the stages overlap: a chunk's distribution begins when its sum is complete.
//
// The sum's order is fixed by the segment: segment j is summed over ranks j, j+1, ..., j-1, from the left.

#include "executor/roads/road.h"

namespace commtune {

/// Some ranks in a ring: how many, which of them this rank is, and its neighbours' ranks.
struct Circle {
  int size = 1;
  int own = 0;
  int left = 0, right = 0;
};

/// All workers, in rank order.
Circle circle_of(const RoadMessage& message);

/// Over a circle of some of the workers. Does not report its last stage: the caller's may go on.
Task ring_all_reduce(RoadMessage message, Circle circle);
Task ring_reduce_scatter(RoadMessage message, Circle circle);
Task ring_all_gather(RoadMessage message, Circle circle);

Task ring_all_reduce(RoadMessage message);
Task ring_reduce_scatter(RoadMessage message);
Task ring_all_gather(RoadMessage message);

}  // namespace commtune
