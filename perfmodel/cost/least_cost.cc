#include "perfmodel/cost/least_cost.h"

#include <algorithm>

#include "perfmodel/fit/curve_ops.h"

namespace commtune {

LeastCost least_cost(const StageCost& cost, Floor floor) {
  const auto per_byte = [&](const Curve& curve) {
    return floor == Floor::kStartUp ? curve.least_beta() : least_time_per_byte(curve);
  };
  const SecondsPerByte beta = std::min(per_byte(cost.occupancy), per_byte(cost.alone));
  LeastCost least;
  least.beta = beta.value;
  least.latency = start_up_beside(beta, cost.alone).count();
  least.overhead = std::min(least.latency, start_up_beside(beta, cost.occupancy).count());
  return least;
}

}  // namespace commtune
