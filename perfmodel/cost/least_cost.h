#pragma once
// What a message costs at least, as straight lines below its costs, for bounds. MODEL.md section 3.4.

#include "perfmodel/cost/road_cost.h"

namespace commtune {

/// Every message of m bytes keeps the channel of its stage busy for at least overhead + beta * m, and ends no
/// sooner than `latency` after the channel has served its last byte. In seconds and seconds per byte.
struct LeastCost {
  double latency = 0, beta = 0;
  double overhead = 0;  ///< of the channel, per message
  bool operator==(const LeastCost&) const = default;
};

/// Which straight line below a cost curve is taken. If the curve is itself one line, both are that line. A
/// curve such as max(start-up, bytes) has no line below it that is right for small and for large messages.
enum class Floor {
  kStartUp,  ///< starts at the cost of an empty message and rises as steeply as the curve allows from there
  kBytes,    ///< rises by the full time per byte of large messages and starts as high as the curve allows
};

LeastCost least_cost(const StageCost& cost, Floor floor);

}  // namespace commtune
