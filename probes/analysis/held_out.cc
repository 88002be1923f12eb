#include "probes/analysis/held_out.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "perfmodel/base/error.h"
#include "perfmodel/base/normal.h"
#include "perfmodel/cost/stage_cost.h"
#include "perfmodel/cost/topology.h"

namespace commtune::probes {

namespace {

// Ratio. Leaving a size out makes the gap between its neighbours twice as wide, and what a line between two
// points of a smooth curve is off by grows with the square of their distance.
constexpr double kOfTwiceTheGap = 0.25;

// What fits have in common counts as much as so many sizes of their own (shrinking, Smyth 2004). A road of
// the fewest sizes has one that can be left out, whose error alone is chance; with more here a road that is
// off by more than the others would not show.
constexpr double kCommonCounts = 2;

bool both_stages(const OperationFit& fit) {
  return fit.operation == Operation::kAllReduce || fit.operation == Operation::kPushPull;
}

void compare(CostErrors& errors, const Fit& fit, const Curve& said) {
  if (fit.quality.samples < static_cast<int>(kEnoughSizes) || said.empty()) return;
  const auto ask = [&](SquaredErrors& of, Bytes size) {
    const double measured = fit.curve(size).count(), expected = said(size).count();
    if (measured > 0 && expected > 0) of.add(std::log(measured / expected));
  };
  if (startup_share(fit.curve, fit.smallest) > kMostly) ask(errors.startup, fit.smallest);
  if (startup_share(fit.curve, fit.largest) < kMostly) ask(errors.rate, fit.largest);
}

}  // namespace

double startup_share(const Curve& curve, Bytes size) {
  const Seconds cost = curve(size);
  if (cost <= Seconds{0}) return 0;
  const double bytes = curve.pieces().back().beta.value * static_cast<double>(size.count);
  return std::clamp(1 - bytes / cost.count(), 0.0, 1.0);
}

double SquaredErrors::deviation() const { return std::sqrt(mean()); }

double shrunk(const SquaredErrors& own, const SquaredErrors& common) {
  return std::sqrt((own.sum + kCommonCounts * common.mean()) / (own.count + kCommonCounts));
}

SquaredErrors between_sizes(std::span<const Sample> by_size, const CurveOf& curve_of) {
  SquaredErrors errors;
  for (std::size_t left_out = 1; left_out + 1 < by_size.size(); ++left_out) {
    std::vector<Sample> rest(by_size.begin(), by_size.end());
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(left_out));
    const Sample& sample = by_size[left_out];
    const double said = curve_of(rest)(sample.size).count();
    if (said <= 0) continue;
    const double seen = kOfTwiceTheGap * std::log(sample.time.count() / said);
    const double own = sample.half_width / sample.time / kNormal95;
    errors.add(std::sqrt(std::max(seen * seen - own * own, 0.0)));
  }
  return errors;
}

CostErrors roads_held_out(const Cluster& cluster) {
  CostErrors errors;
  const auto is_inside = [&](const OperationFit& fit) {
    return inside_one_host(cluster, fit.workers, fit.road);
  };
  const bool all_inside = std::ranges::all_of(cluster.operations, is_inside);
  for (const OperationFit& fit : cluster.operations) {
    if (!both_stages(fit) || (is_inside(fit) && !all_inside)) continue;
    Cluster without = cluster;
    std::erase_if(without.operations, [&](const OperationFit& other) {
      return other.road == fit.road && other.workers == fit.workers;
    });
    try {
      const RoadCost said = road_cost(fit.road, without, fit.workers);
      compare(errors, fit.alone, said.both.alone);
      compare(errors, fit.streamed, said.both.occupancy);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kNotFound) throw;
    }
  }
  return errors;
}

}  // namespace commtune::probes
