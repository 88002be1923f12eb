#pragma once
// One-shot all-reduce: every rank sends its whole message to every other and adds up what it gets. One
// latency where recursive doubling has log2(N), for (N-1)/log2(N) times its bytes: for messages that are
// nearly empty. GPU libraries use it within a node under this name (TensorRT-LLM, vLLM). One stage only.
//
// Bytes each way per rank: (N-1) m, in one step. All ranks add in the order of ranks: all end with the same
// bits.

#include "executor/roads/road.h"

namespace commtune {

Task one_shot_all_reduce(RoadMessage message);

}  // namespace commtune
