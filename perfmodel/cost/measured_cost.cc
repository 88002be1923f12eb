#include "perfmodel/cost/measured_cost.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "perfmodel/base/error.h"
#include "perfmodel/base/overloaded.h"
#include "perfmodel/cost/cost_text.h"
#include "perfmodel/cost/link_limits.h"
#include "perfmodel/fit/curve_ops.h"

namespace commtune {

namespace {

StageCost times(const StageCost& cost, double factor) {
  return {commtune::times(cost.alone, factor), commtune::times(cost.occupancy, factor)};
}

/// Sizes from one on at which a stage's costs may bend, in order.
std::vector<Bytes> bends_from(Bytes size, const StageCost& stage) {
  std::vector<Bytes> bends{size};
  for (const Curve* curve : {&stage.alone, &stage.occupancy}) {
    for (const CurvePiece& piece : curve->pieces())
      if (piece.from > size) bends.push_back(piece.from);
  }
  std::ranges::sort(bends);
  bends.erase(std::unique(bends.begin(), bends.end()), bends.end());
  return bends;
}

/// What messages take alone. Where no longer one was measured than a chunk, the bytes beyond cost no more
/// than as messages of a stream, for they are chunks that follow each other, and what by the formula they
/// have alone beside that: until a message is long enough for whole chunks its first one grows.
Curve alone_of(const OperationFit& fit, PricedRoad& priced, StageCost Formula::*stage) {
  const Curve& alone = fit.alone.curve;
  const Bytes largest = fit.alone.largest;
  if (fit.streamed.curve.empty() || largest == Bytes{0} || largest > priced.cluster.traits.chunk)
    return alone;
  const double rate = fit.streamed.curve.pieces().back().beta.value;
  if (!(rate < alone.pieces().back().beta.value)) return alone;
  const StageCost formula = formula_of_stage(priced, stage);
  const auto lag = [&](Bytes size) { return (formula.alone(size) - formula.occupancy(size)).count(); };
  std::vector<CurvePiece> pieces = alone.pieces();
  std::erase_if(pieces, [&](const CurvePiece& piece) { return piece.from >= largest; });
  const std::vector<Bytes> bends = bends_from(largest, formula);
  double grown = 0;  // of the lag
  for (std::size_t i = 0; i < bends.size(); ++i) {
    const auto from = static_cast<double>(bends[i].count);
    const double time = alone(largest).count() + rate * (from - static_cast<double>(largest.count)) + grown;
    double slope = rate;
    if (i + 1 < bends.size()) {
      const double more = std::max(0.0, lag(bends[i + 1]) - lag(largest) - grown);
      slope += more / (static_cast<double>(bends[i + 1].count) - from);
      grown += more;
    }
    // A curve's start-ups are not negative, not even by rounding.
    slope = std::min(slope, time / from);
    const double start = std::max(0.0, time - slope * from);
    pieces.push_back({bends[i], Seconds{start}, SecondsPerByte{slope}});
  }
  return lower(alone, Curve{std::move(pieces)});
}

/// otherwise  what a stream costs by formula, with its bytes at the links' rate, for where no stream was
///            measured: one message alone may leave links idle that the next one would fill. Without a
///            measured stream and a formula, nothing is hidden.
/// stage      of the priced road, that the fit is of
StageCost stage_of(const OperationFit& fit, const Curve& otherwise, PricedRoad& priced,
                   StageCost Formula::*stage) {
  const Curve alone = alone_of(fit, priced, stage);
  const Curve& streamed = fit.streamed.curve;
  if (streamed.empty()) return {alone, otherwise.empty() ? alone : lower(otherwise, alone)};
  return {alone, lower(streamed, alone)};
}

/// Streaming hides latencies, not bytes: however many messages are in flight, each keeps the channel busy for
/// its bytes. Where the links do not tell what these take, that is as in the best rate that was reached, by
/// one message alone or by the largest that were streamed (where pushes overlap with pulls that is the better
/// one). Without that floor a line through small streamed messages, whose cost hardly depends on their size,
/// would promise large ones more than the link's bandwidth.
void keep_to_best_rate(StageCost& stage, const Fit& streamed) {
  if (streamed.curve.empty()) return;
  double least = least_time_per_byte(stage.alone).value;
  if (const Bytes largest = streamed.largest; largest > Bytes{0}) {
    least = std::min(least, streamed.curve(largest).count() / static_cast<double>(largest.count));
  }
  stage.occupancy = lower(upper(stage.occupancy, line(0, least)), stage.alone);
}

/// A stage that was not measured on its own: its share of the whole by the formula, or half where the links
/// that the formula needs were not measured either. Alone, a server in turn hides a part of one stage behind
/// the other: for how long it handles a message the formula tells.
StageCost share_of(const StageCost& both, PricedRoad& priced, Stage stage) {
  if (!has_two_stages(priced.road)) return stage == Stage::kReduce ? both : StageCost{};
  double share = 0.5;
  const StageCost* handled = nullptr;
  try {
    const Formula& formula = priced.formula();
    const double reduce = formula.reduce.alone(4_MiB).count(), rest = formula.distribute.alone(4_MiB).count();
    if (reduce + rest > 0) share = reduce / (reduce + rest);
    if (assignment_of(priced.road) == Assignment::kHashed)
      handled = stage == Stage::kReduce ? &formula.reduce : &formula.distribute;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound) throw;
  }
  StageCost part = times(both, stage == Stage::kReduce ? share : 1 - share);
  if (handled != nullptr) part.alone = handled->alone;
  return part;
}

void widen(std::optional<std::pair<Bytes, Bytes>>& range, const Fit& fit) {
  range = range ? std::pair{std::max(range->first, fit.smallest), std::min(range->second, fit.largest)}
                : std::pair{fit.smallest, fit.largest};
}

/// Either, of anything that was measured of the road: of both stages at once, or where that was not measured
/// of each.
bool beat_links(const Measurements& found, const Formula& wire) {
  const auto beats = [](const OperationFit* fit, const StageCost& by) {
    return fit != nullptr && (beats_links(fit->alone, by) || streams_beat_links(fit->streamed, by));
  };
  if (found.both != nullptr) return beats(found.both, wire.both);
  return beats(found.reduce, wire.reduce) || beats(found.distribute, wire.distribute);
}

/// Both for a measured cost.
void keep_measured_to_links(RoadCost& cost, const Formula& wire) {
  pass_at_rate(cost.both, cost.measured_largest, wire.both);
  pass_at_rate(cost.reduce, cost.measured_largest, wire.reduce);
  pass_at_rate(cost.distribute, cost.measured_largest, wire.distribute);
  keep_to_links(cost, wire);
}

/// What no cost of the road may promise to beat; nullptr where the links were not measured, or were seen to
/// be beaten.
const Formula* limits_of(const Measurements& found, PricedRoad& priced) {
  try {
    const Formula& wire = priced.wire();
    return beat_links(found, wire) ? nullptr : &wire;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound) throw;
    return nullptr;
  }
}

Deviation larger(const Deviation& a, const Deviation& b) {
  const auto may_oppose = [](const Deviation& each) { return each.opposed || !each.any(); };
  return {std::max(a.startup, b.startup), std::max(a.rate, b.rate),
          (a.any() || b.any()) && may_oppose(a) && may_oppose(b)};
}

/// Whether servers rather than workers' cards would set the pace, where a formula can tell.
bool servers_bind(PricedRoad& priced) {
  const auto binds = [&](const ParameterServer& road) {
    try {
      return priced.formula().server_binds;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kNotFound) throw;
      return priced.workers > road.servers;
    }
  };
  return match(
      priced.road, [](const AllReduce&) { return false; }, binds);
}

}  // namespace

std::optional<RoadCost> measured_cost(PricedRoad& priced) {
  const Operations named = operations_of(priced.road);
  const Measurements found(priced.road, priced.cluster, priced.workers);
  if (!found.suffice()) return std::nullopt;
  const OperationFit *both = found.both, *reduce = found.reduce, *distribute = found.distribute;

  RoadCost cost;
  std::optional<std::pair<Bytes, Bytes>> range;
  for (const OperationFit* fit : {both, reduce, distribute}) {
    if (fit != nullptr) widen(range, fit->alone);
  }
  cost.measured_smallest = range->first;
  cost.measured_largest = range->second;
  const Formula streams = found.all_streamed() ? Formula{} : streams_by_formula(priced).value_or(Formula{});
  for (const OperationFit* fit : {both, reduce, distribute}) {
    if (fit == nullptr) continue;
    cost.deviation.alone = larger(cost.deviation.alone, fit->alone.deviation);
    cost.deviation.streamed = larger(cost.deviation.streamed, fit->streamed.deviation);
  }
  if (!found.all_streamed())
    cost.deviation.streamed = larger(cost.deviation.streamed, priced.cluster.formula_deviation);
  const Formula* const limits = limits_of(found, priced);
  // Two ranks alone on a host have more of its cores and memory than all of them at once.
  const bool links_tell = limits != nullptr && priced.place().hosts > 1;
  const auto stage = [&](const OperationFit* fit, StageCost Formula::*which) {
    StageCost of_stage = stage_of(*fit, (streams.*which).occupancy, priced, which);
    if (!links_tell) keep_to_best_rate(of_stage, fit->streamed);
    return of_stage;
  };
  const auto first = [&] { return stage(reduce, &Formula::reduce); };
  const auto second = [&] { return stage(distribute, &Formula::distribute); };
  cost.both = both != nullptr ? stage(both, &Formula::both) : sum_of(first(), second());
  cost.reduce = reduce != nullptr ? first() : share_of(cost.both, priced, Stage::kReduce);
  cost.distribute = distribute != nullptr ? second() : share_of(cost.both, priced, Stage::kDistribute);
  if (limits != nullptr) keep_measured_to_links(cost, *limits);
  cost.basis = Basis::kMeasured;
  if (priced.detail == CostDetail::kTimes) return cost;
  cost.server_binds = servers_bind(priced);
  cost.explanation = "measured " + to_string(both != nullptr ? named.both : named.reduce) + ", " +
                     describe(priced.road) + ", " + counted(priced.workers, "worker") + ", " +
                     range_text(cost);
  return cost;
}

}  // namespace commtune
