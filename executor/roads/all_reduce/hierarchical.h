#pragma once
// All-reduce for hosts with several workers: what stays inside a host goes through memory, and each host's
// card carries every byte once (as in BlueConnect, Cho et al., IBM J. Res. Dev. 63, 2019).
//
// With g workers on each of n hosts (where hosts differ, g is the smallest number), the message is cut into g
// parts. Reduce: inside each host its workers send part l to their l-th, which adds in rank order; then the
// l-th workers of all hosts reduce-scatter part l around a ring. Distribute: all-gather around those rings,
// then each l-th worker hands part l to the others of its host.
//
// Bytes each way per card: 2(n-1)/n m over g streams, in 2(n-1) steps; (g-1)/g m per worker and stage in
// memory. With one worker a host this is the ring. The sum's order is fixed by the layout of the hosts.

#include "executor/roads/road.h"

namespace commtune {

Task hierarchical_all_reduce(RoadMessage message);
Task hierarchical_reduce_scatter(RoadMessage message);
Task hierarchical_all_gather(RoadMessage message);

}  // namespace commtune
