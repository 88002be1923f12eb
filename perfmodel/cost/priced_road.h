#pragma once
// A road while it is priced: what several parts of its cost ask for, worked out once.

#include <optional>

#include "perfmodel/cluster.h"
#include "perfmodel/cost/road_cost.h"
#include "perfmodel/cost/road_formula.h"
#include "perfmodel/cost/topology.h"
#include "perfmodel/plan.h"

namespace commtune {

/// A road that is priced. Its formulas are worked out when they are first asked for, and once: a measured
/// cost asks several times, and every draw of the fits prices every road anew.
class PricedRoad {
 public:
  PricedRoad(const Road& priced, const Cluster& on, int by_workers, CostDetail wanted = CostDetail::kWhole)
      : road(priced), cluster(on), workers(by_workers), detail(wanted) {}

  const Road& road;
  const Cluster& cluster;
  const int workers;
  const CostDetail detail;

  const Topology& place() {
    if (!place_) place_ = topology_of(cluster, workers);
    return *place_;
  }
  /// Throws as formula_of does.
  const Formula& formula() {
    if (!formula_) formula_ = formula_of(road, cluster, place());
    return *formula_;
  }
  /// Throws as wire_of does.
  const Formula& wire() {
    if (!wire_) wire_ = wire_of(road, cluster, place());
    return *wire_;
  }

 private:
  std::optional<Topology> place_;
  std::optional<Formula> formula_, wire_;
};

/// carried_streams of a road that is being priced.
std::optional<Formula> streams_by_formula(PricedRoad& priced);

/// Of the road's formula; costs nothing where the links that it needs were not measured.
StageCost formula_of_stage(PricedRoad& priced, StageCost Formula::*stage);

/// Each on its own, for exactly these workers.
bool stages_were_measured(const PricedRoad& priced);

}  // namespace commtune
