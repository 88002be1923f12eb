#include "tuner/cluster_draws.h"

#include <algorithm>
#include <string>
#include <tuple>

#include "perfmodel/base/normal.h"
#include "perfmodel/base/random.h"
#include "perfmodel/cost/prediction_limits.h"
#include "perfmodel/cost/road_kind.h"
#include "perfmodel/fit/fit.h"

namespace commtune::tuner {

ClusterDraws::ClusterDraws(const Cluster& cluster, const std::vector<Road>& roads, int count,
                           std::uint64_t seed)
    : cluster_(cluster), count_(count) {
  std::erase_if(cluster_.operations, [&](const OperationFit& fit) {
    return std::none_of(roads.begin(), roads.end(),
                        [&](const Road& road) { return same_kind(road, fit.road); });
  });
  // Each fit has a stream of its own, so their order must not depend on when what was measured.
  const auto key = [](const OperationFit& fit) {
    return std::tuple(describe(fit.road), fit.operation, fit.workers);
  };
  std::stable_sort(cluster_.operations.begin(), cluster_.operations.end(),
                   [&](const OperationFit& a, const OperationFit& b) { return key(a) < key(b); });
  std::uint64_t stream = seed;
  for (auto& [kind, link] : cluster_.links) {
    for (Fit* fit : {&link.alone, &link.streamed, &link.duplex}) add(*fit, ++stream);
  }
  for (OperationFit& operation : cluster_.operations) {
    for (Fit* fit : {&operation.alone, &operation.streamed}) add(*fit, ++stream);
  }
  Random random(seed);
  for (const auto member : kScalars) {
    const Scalar& scalar = cluster_.*member;
    in_doubt_ = in_doubt_ || scalar.half_width > 0;
    std::vector<double>& values = scalars_.emplace_back();
    values.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) {
      values.push_back(std::max(0.0, scalar.value + scalar.half_width / kNormal95 * random.normal()));
    }
  }
}

void ClusterDraws::add(Fit& fit, std::uint64_t seed) {
  if (fit.covariance.empty() || fit.curve.empty()) return;
  in_doubt_ = true;
  drawn_.push_back({&fit.curve, draw_curves(fit, count_, seed)});
}

const Cluster& ClusterDraws::draw(int index) {
  const auto i = static_cast<std::size_t>(index);
  for (Drawn& drawn : drawn_) *drawn.target = drawn.curves[i];
  for (std::size_t s = 0; s < kScalars.size(); ++s) (cluster_.*kScalars[s]).value = scalars_[s][i];
  return cluster_;
}

}  // namespace commtune::tuner
