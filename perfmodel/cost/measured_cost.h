#pragma once
// The cost of a road that was measured, with what its links and formulas say of what was not.

#include <algorithm>
#include <array>
#include <optional>

#include "perfmodel/cluster.h"
#include "perfmodel/cost/priced_road.h"
#include "perfmodel/cost/road_cost.h"
#include "perfmodel/cost/road_kind.h"

namespace commtune {

/// What was measured of a road at this N; nullptr what was not.
struct Measurements {
  const OperationFit* both;
  const OperationFit* reduce;
  const OperationFit* distribute;

  Measurements(const Road& road, const Cluster& cluster, int workers) {
    const Operations named = operations_of(road);
    both = find_operation(cluster, road, named.both, workers);
    reduce = find_operation(cluster, road, named.reduce, workers);
    distribute = find_operation(cluster, road, named.distribute, workers);
  }
  /// Whether they price the whole road.
  bool suffice() const { return both != nullptr || (reduce != nullptr && distribute != nullptr); }
  bool all_streamed() const {
    return std::ranges::none_of(std::array{both, reduce, distribute}, [](const OperationFit* fit) {
      return fit != nullptr && fit->streamed.curve.empty();
    });
  }
};

/// The measured cost of a road, or nothing when it was not measured at this N.
std::optional<RoadCost> measured_cost(PricedRoad& priced);

}  // namespace commtune
