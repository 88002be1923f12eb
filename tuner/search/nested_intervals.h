#pragma once
// The best schedule of neighbouring blocks around the turn from backward to forward pass.
//
// A gradient may travel from r (it exists) to T - q (its layer runs): these intervals are nested, the first
// layer's inside the second's and so on. So a good schedule is built from the outside in: each block of
// neighbours goes either to the left, after everything left of it (as the backward pass produces it, first
// come first served), or to the right, before everything right of it (as the forward pass needs it), or, on a
// road whose stages can be parted, its reduce to the left and its distribute to the right. With E the end of
// the left part and D the time from the start of the right part to the end of the iteration,
//
//   left:   E' = max(E, r) + c           D' = max(D, q)
//   right:  E' = E                       D' = max(D, q) + c
//   parted: E' = max(E, r) + c_reduce    D' = max(D, q) + c_distribute
//
// and T = max(E, B) + D when all is placed. All blocks left is exact fusion (MODEL.md section 5), all parted
// is DeAR with exact fusion. The program keeps, per number of units placed, the pairs (E, D) that no other
// pair beats, in steps of E: exact but for that rounding and for blocks whose units are not neighbours. Where
// the stages have a channel each, the slower one paces the schedule and the other one's time is added to each
// block's lag; since a large block then holds up the second channel for the small one behind it, such roads
// want blocks of limited size.

#include <cstddef>
#include <vector>

#include "perfmodel/cost/road_cost.h"
#include "tuner/search/units.h"

namespace commtune::tuner {

enum class Side { kLeft, kRight, kParted };

/// Neighbouring units that travel as one message.
struct Block {
  std::size_t first = 0, count = 0;
  Side side = Side::kLeft;
};

struct NestedIntervalOptions {
  bool parted = false;     ///< the road's stages may be parted: costs are those of reduce and distribute
  std::size_t steps = 48;  ///< of E
  double largest = 1;      ///< no block of several units carries more than this part of all bytes
};

/// Blocks in the order of their units, which must be in the order in which gradients appear.
///
/// compute_end  B, when the backward pass ends
/// worst        a time that some schedule reaches: nothing slower is kept
/// returns      empty when no schedule of this kind is faster than `worst`
/// cost         O(units^2 * steps)
std::vector<Block> nested_interval_blocks(const std::vector<SearchUnit>& units, const RoadCost& cost,
                                          double compute_end, double worst,
                                          const NestedIntervalOptions& options = {});

}  // namespace commtune::tuner
