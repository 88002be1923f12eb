#pragma once
// Recursive halving reduce-scatter and recursive doubling all-gather (Rabenseifner, ICCS 2004; Thakur et al.,
// Int. J. High Perform. Comput. Appl. 19, 2005).
//
// The message is cut into P segments, P the largest power of two up to N. Reduce, distances d = P/2, ..., 1:
// rank r swaps with rank r xor d the half of its current stretch that belongs to the other's side, and adds
// what comes to the half it keeps; it ends with the sum of segment r. Distribute walks the distances back and
// swaps whole stretches. When N > P, rank P+i first sends its whole message to rank i and gets the result at
// the end.
//
// Bytes each way per rank: 2(P-1)/P m, in 2 log2(P) steps; a folded pair adds m and a step at either end. A
// step's chunks are summed while the next ones arrive.
//
// The sum's order is the same tree on every rank of a segment: fixed by N alone.

#include "executor/roads/road.h"

namespace commtune {

Task halving_doubling_all_reduce(RoadMessage message);
Task halving_reduce_scatter(RoadMessage message);
Task doubling_all_gather(RoadMessage message);

}  // namespace commtune
