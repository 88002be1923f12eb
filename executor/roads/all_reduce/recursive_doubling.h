#pragma once
// Recursive doubling all-reduce (Thakur et al., Int. J. High Perform. Comput. Appl. 19, 2005): for short
// messages, where steps cost more than bytes. One stage only.
//
// Distances d = 1, 2, ..., P/2, P the largest power of two up to N: rank r swaps its whole message with rank
// r xor d, and both add. Rank P+i first sends its message to rank i and gets the result at the end.
//
// Bytes each way per rank: log2(P) m, in log2(P) steps; a folded pair adds m and a step at either end.
// Both ends of a swap add the same two numbers, so all ranks end with the same bits.

#include "executor/roads/road.h"

namespace commtune {

Task recursive_doubling_all_reduce(RoadMessage message);

}  // namespace commtune
