#pragma once
// After US-Byte (IEEE TPDS 2024): blocks of unequal size in a near-optimal order, fused and cut.

#include "tuner/planning.h"

namespace commtune::tuner {

/// At hand was the abstract alone: blocks of unequal size, a cheap algorithm for those of the backward phase,
/// a closed form for those of the forward phase; 1.26 times ByteScheduler and 1.56 times WFBP on 8 nodes.
///
/// Taken from it: the two phases, unequal blocks, an order by what is needed first.
/// Reconstructed: until the backward pass ends, neighbours are fused exactly (fusion.h) and go in the order
/// in which they appear; the group that is under way when it ends is cut there. What is left goes in forward
/// order, each block as large as still ends before the forward pass needs its first layer, one layer at
/// least; a tensor that would cross that moment is cut. Where that moment is past (the first block is needed
/// at once), a block has a least size, which is chosen among a layer and doublings of it by simulation.
Plan us_byte(const Planning& job, const RoadOption& option);

}  // namespace commtune::tuner
