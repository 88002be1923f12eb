#include "perfmodel/cost/stage_cost.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "perfmodel/base/error.h"
#include "perfmodel/base/overloaded.h"
#include "perfmodel/cost/calibration.h"
#include "perfmodel/cost/cost_text.h"
#include "perfmodel/cost/link_limits.h"
#include "perfmodel/cost/measured_cost.h"
#include "perfmodel/cost/priced_road.h"
#include "perfmodel/cost/road_channel.h"
#include "perfmodel/cost/road_formula.h"
#include "perfmodel/cost/road_kind.h"
#include "perfmodel/fit/curve_ops.h"

namespace commtune {

namespace {

void check_servers(const ParameterServer& road, int workers) {
  const bool colocated = road.placement == Placement::kColocated;
  if (road.servers < 1 || (colocated && road.servers > workers)) {
    throw Error(ErrorCode::kBadInput,
                "servers = " + std::to_string(road.servers) + ": must be at least 1" +
                    (colocated ? " and at most the " + counted(workers, "worker") : ""));
  }
  if (road.first < 0 || road.first >= workers) {
    throw Error(ErrorCode::kBadInput, "first = " + std::to_string(road.first) + ": must be one of the " +
                                          counted(workers, "worker"));
  }
}

void check_road(const Road& road, int workers) {
  if (workers < 1) {
    throw Error(ErrorCode::kBadInput, "workers = " + std::to_string(workers) + ": must be at least 1");
  }
  match(
      road, [](const AllReduce&) {},
      [&](const ParameterServer& servers) { check_servers(servers, workers); });
}

RoadCost by_formula(PricedRoad& priced) {
  const auto& [road, cluster, workers] = std::tie(priced.road, priced.cluster, priced.workers);
  const Formula& formula = priced.formula();
  const OperationFit* other = nearest_fit(road, cluster, workers, SendMode::kAlone);
  const OperationFit* stream = nearest_fit(road, cluster, workers, SendMode::kStreamed);
  const bool library = of_library(road);
  if (library && other == nullptr) {
    throw Error(ErrorCode::kNotFound,
                "cluster " + cluster.name +
                    " has no measurement of the library's own all-reduce, and no formula "
                    "knows what the library would choose: probe it");
  }
  const Calibration alone =
      other != nullptr
          ? calibration(other->alone, formula_of(other->road, cluster, other->workers).both.alone)
          : Calibration{};
  const Calibration streamed = stream != nullptr ? calibration_of_streams(*stream, cluster) : alone;
  const auto calibrated = [&](const StageCost& stage) {
    return StageCost{alone(stage.alone), lower(streamed(stage.occupancy), alone(stage.alone))};
  };
  RoadCost cost;
  cost.both = calibrated(formula.both);
  cost.reduce = library ? cost.both : calibrated(formula.reduce);
  cost.distribute = library ? StageCost{} : calibrated(formula.distribute);
  // A message alone calibrates; what it hides of its two stages a stream of them hides already.
  const bool faster =
      other != nullptr && beats_links(other->alone, wire_of(other->road, cluster, other->workers).both);
  if (!faster) keep_to_links(cost, priced.wire());
  cost.server_binds = formula.server_binds;
  cost.deviation = {cluster.formula_deviation, cluster.formula_deviation};
  cost.basis = Basis::kFormula;
  cost.measured_smallest = formula.smallest;
  cost.measured_largest = formula.largest;
  if (priced.detail == CostDetail::kTimes) return cost;
  cost.explanation = "formula over link fits, " + describe(road) + ", " + counted(workers, "worker") +
                     (other != nullptr ? ", calibrated at " + counted(other->workers, "worker") : "") +
                     (stream != nullptr ? ", streams as " + describe(stream->road) : "") + ", " +
                     range_text(cost);
  return cost;
}

/// To a stage that is there: per byte, whether the message has the channel to itself or not. One thread
/// casts, adds and sends.
void add_per_byte(StageCost& stage, double seconds) {
  if (stage.alone.empty()) return;
  stage.alone = sum(stage.alone, line(0, seconds));
  stage.occupancy = sum(stage.occupancy, line(0, seconds));
}

/// Casts take the place of copies, for every message. Fits are of sums in float32: what the sums of the other
/// type take longer is added, also where others' bytes would hide it.
void add_casts(RoadCost& cost, PricedRoad& priced) {
  const Cluster& cluster = priced.cluster;
  const CastCosts& costs = cluster.casts.at(cluster.wire);
  const double slower =
      std::max(0.0, costs.reduce_seconds_per_byte.value - cluster.reduce_seconds_per_byte.value);
  const double adding = slower * summed_per_byte(priced.road, cluster, priced.place());
  const double casting = costs.cast_seconds_per_byte.value;
  const bool two_stages = !cost.distribute.alone.empty();
  add_per_byte(cost.both, adding + casting);
  add_per_byte(cost.reduce, adding + (two_stages ? casting / 2 : casting));
  add_per_byte(cost.distribute, casting / 2);
  cost.copy = SecondsPerByte{0};
  cost.explanation += ", cast to " + to_string(cluster.wire);
}

}  // namespace

Curve until_sent(const RoadCost& cost) {
  const StageCost& both = cost.both;
  if (cost.opaque) return both.alone;
  const double last = cost.rounds.last_share();
  return sum(times(both.alone, 1 - last), times(lower(both.occupancy, both.alone), last));
}

Seconds most_skew(const RoadCost& cost, Bytes total) {
  return Seconds{cost.skew.seconds(cost.both.alone(total).count())};
}

std::optional<Formula> carried_streams(const Road& road, const Cluster& cluster, int workers) {
  PricedRoad priced(road, cluster, workers);
  return streams_by_formula(priced);
}

RoadCost road_cost(const Road& road, const Cluster& cluster, int workers, CostDetail detail) {
  check_road(road, workers);
  RoadCost cost;
  if (workers == 1) {
    cost.explanation = "one worker: nothing travels";
    cost.measured_largest = Bytes{~std::uint64_t{0}};
    return cost;
  }
  PricedRoad priced(road, cluster, workers, detail);
  std::optional<RoadCost> direct = measured_cost(priced);
  cost = direct ? *std::move(direct) : by_formula(priced);
  match(
      road, [&](const AllReduce& all_reduce) { add_channel(cost, all_reduce, priced); },
      [&](const ParameterServer& servers) { add_channel(cost, servers, priced); });
  cost.may_part = may_be_decoupled(road) && (has_two_stages(road) || stages_were_measured(priced));
  cost.copy = SecondsPerByte{cluster.copy_seconds_per_byte.value};
  cost.interference = cluster.interference.value;
  cost.straggling = Seconds{cluster.jitter_seconds.value * expected_maximum(workers)};
  if (cluster.wire != WireFormat::kAsIs) add_casts(cost, priced);
  return cost;
}

std::vector<FitSource> fits_behind(const Road& road, const Cluster& cluster, int workers) {
  std::vector<FitSource> sources;
  if (workers == 1) return sources;
  const auto add = [&](const OperationFit* fit, bool alone, bool streamed) {
    if (fit == nullptr) return;
    for (const FitSource& source : fits_of(*fit)) {
      if (source.fit == &fit->alone ? alone : streamed) sources.push_back(source);
    }
  };
  const Measurements found(road, cluster, workers);
  if (found.suffice()) {
    for (const OperationFit* fit : {found.both, found.reduce, found.distribute}) add(fit, true, true);
    if (found.all_streamed()) return sources;
  } else {
    add(nearest_fit(road, cluster, workers, SendMode::kAlone), true, false);
  }
  add(nearest_fit(road, cluster, workers, SendMode::kStreamed), false, true);
  for (const FitSource& source : link_fits_of(cluster)) sources.push_back(source);
  return sources;
}

}  // namespace commtune
