#include "perfmodel/cost/road_factor.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "perfmodel/cost/road_kind.h"
#include "perfmodel/cost/stage_cost.h"
#include "perfmodel/fit/curve_ops.h"

namespace commtune {

namespace {

Fit scaled(Fit fit, const CostFactor& factor) {
  // Of the fit's parameter of this number: start-ups and times per byte in turn.
  const auto of_parameter = [&](std::size_t i) { return i % 2 == 0 ? factor.startup : factor.rate; };
  const std::size_t parameters = 2 * fit.curve.pieces().size();
  for (std::size_t i = 0; i < fit.covariance.size(); ++i) {
    fit.covariance[i] *= of_parameter(i / parameters) * of_parameter(i % parameters);
  }
  fit.curve = recalibrated(fit.curve, factor.startup, factor.rate);
  fit.deviation = factor.deviation;
  return fit;
}

/// Changes the fits of one road, or makes them of what it costs.
class Refit {
 public:
  Refit(Cluster& cluster, const RoadFactor& factor, const RoadCost& cost, int workers)
      : cluster_(cluster), factor_(factor), cost_(cost), workers_(workers) {}

  void apply() const {
    const Operations named = operations_of(factor_.road);
    change(named.both, cost_.both);
    if (!has_two_stages(factor_.road)) return;
    change(named.reduce, cost_.reduce);
    change(named.distribute, cost_.distribute);
  }

 private:
  void change(Operation operation, const StageCost& before) const {
    const auto fit = std::ranges::find_if(cluster_.operations, [&](const OperationFit& each) {
      return each.road == factor_.road && each.operation == operation && each.workers == workers_;
    });
    if (fit == cluster_.operations.end()) {
      if (cost_.basis != Basis::kFormula) return;  // a share of the whole, which is changed
      cluster_.operations.push_back({factor_.road, operation, workers_, made_of(before.alone, factor_.alone),
                                     made_of(before.occupancy, factor_.streamed)});
      return;
    }
    fit->alone = scaled(fit->alone, factor_.alone);
    fit->streamed = fit->streamed.curve.empty() ? made_of(before.occupancy, factor_.streamed)
                                                : scaled(fit->streamed, factor_.streamed);
  }

  Fit made_of(const Curve& curve, const CostFactor& factor) const {
    Fit fit;
    fit.curve = recalibrated(curve, factor.startup, factor.rate);
    fit.smallest = cost_.measured_smallest;
    fit.largest = cost_.measured_largest;
    fit.deviation = factor.deviation;
    return fit;
  }

  Cluster& cluster_;
  const RoadFactor& factor_;
  const RoadCost& cost_;
  const int workers_;
};

}  // namespace

Cluster refitted(Cluster cluster, std::span<const RoadFactor> factors, int workers) {
  std::vector<RoadCost> before;
  before.reserve(factors.size());
  for (const RoadFactor& factor : factors)
    before.push_back(road_cost(factor.road, over_transport(cluster, factor.transport), workers));
  for (std::size_t i = 0; i < factors.size(); ++i)
    Refit(over_transport(cluster, factors[i].transport), factors[i], before[i], workers).apply();
  return cluster;
}

}  // namespace commtune
