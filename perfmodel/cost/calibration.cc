#include "perfmodel/cost/calibration.h"

#include <cmath>
#include <cstdint>
#include <tuple>

#include "perfmodel/base/overloaded.h"
#include "perfmodel/cost/road_formula.h"
#include "perfmodel/cost/road_kind.h"
#include "perfmodel/cost/topology.h"

namespace commtune {

namespace {

bool assigned_alike(const Road& a, const Road& b) {
  const auto p = assignment_of(a), q = assignment_of(b);
  return !p || !q || p == q;
}

/// Ratios of counts that differ by less (in logarithm) are the same but for rounding.
constexpr double kAsNear = 1e-9;

/// The number that a fit's distance is taken by: 1 for roads without servers.
int servers_of(const Road& road) {
  return match(
      road, [](const AllReduce&) { return 1; },
      [](const ParameterServer& servers) { return servers.servers; });
}

bool calibrates(const OperationFit& fit, const Road& road, SendMode mode) {
  if (fit.operation != operations_of(fit.road).both || fit.workers < 2) return false;
  if (mode == SendMode::kAlone) return same_kind(fit.road, road);
  return !fit.streamed.curve.empty() &&
         (same_kind(fit.road, road) || !(of_library(road) || of_library(fit.road)));
}

}  // namespace

bool of_library(const Road& road) { return road == Road{AllReduce{Collective::kLibrary}}; }

const OperationFit* nearest_fit(const Road& road, const Cluster& cluster, int workers, SendMode mode) {
  const auto ratio = [](double a, double b) { return std::abs(std::log(a / b)); };
  const auto rank = [&](const OperationFit& fit) {
    const double by_workers = ratio(fit.workers, workers);
    const double distance = by_workers + ratio(servers_of(fit.road), servers_of(road));
    return std::tuple(!same_kind(fit.road, road), !assigned_alike(fit.road, road),
                      std::lround(distance / kAsNear), std::lround(by_workers / kAsNear),
                      -servers_of(fit.road), fit.workers);
  };
  const bool inside = inside_one_host(cluster, workers, road);
  const OperationFit* nearest = nullptr;
  for (const OperationFit& fit : cluster.operations) {
    if (!calibrates(fit, road, mode)) continue;
    if (inside_one_host(cluster, fit.workers, fit.road) != inside) continue;
    if (nearest == nullptr || rank(fit) < rank(*nearest)) nearest = &fit;
  }
  return nearest;
}

Calibration calibration(const Fit& fit, const Curve& formula) {
  constexpr std::uint64_t kBeyond = 4;
  const auto slope = [&](const Curve& curve) {
    return (curve(Bytes{kBeyond * fit.largest.count}) - curve(fit.largest)).count();
  };
  const double alpha = formula.least_alpha().count(), beta = slope(formula);
  Calibration scale;
  if (alpha > 0) scale.alpha = fit.curve.least_alpha().count() / alpha;
  if (beta > 0) scale.beta = slope(fit.curve) / beta;
  return scale;
}

Calibration calibration_of_streams(const OperationFit& fit, const Cluster& cluster) {
  return calibration(fit.streamed, formula_of(fit.road, cluster, fit.workers).both.occupancy);
}

}  // namespace commtune
