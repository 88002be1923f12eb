#pragma once
// What a message costs at least, as straight lines below its costs, for bounds. MODEL.md section 3.4.

#include "perfmodel/cost/stage_cost.h"

namespace commtune {

/// Any message of a stage keeps its channel for at least overhead + beta * m, and whatever goes last ends at
/// least `latency` after its last byte was served. In seconds and seconds per byte.
struct LeastCost {
  double latency = 0, beta = 0;
  double overhead = 0;  ///< of the channel, per message
  bool operator==(const LeastCost&) const = default;
};

/// Lines below a cost: one touches it at an empty message, the other has all that a byte costs. The same line
/// for a cost that is one; where messages take the longer of start-up and bytes, neither is both.
enum class Floor { kStartUp, kBytes };

LeastCost least_cost(const StageCost& cost, Floor floor);

}  // namespace commtune
