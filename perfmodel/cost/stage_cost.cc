#include "perfmodel/cost/stage_cost.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <tuple>
#include <utility>

#include "perfmodel/base/error.h"
#include "perfmodel/base/overloaded.h"
#include "perfmodel/cost/card_load.h"
#include "perfmodel/cost/road_formula.h"
#include "perfmodel/fit/curve_ops.h"

namespace commtune {

namespace {

/// Of a rank in two trees: the parents in both, and two children in that one in which it is no leaf.
constexpr int kTreeNeighbours = 4;

/// From so many times the time per byte of others on, a host's card, and not connections between two hosts,
/// is what messages to servers in turn wait for. In between nobody has looked.
constexpr double kSlowCard = 1.5;

StageCost times(const StageCost& cost, double factor) {
  return {commtune::times(cost.alone, factor), commtune::times(cost.occupancy, factor)};
}

std::string counted(int count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

std::string range_text(const RoadCost& cost) {
  return format_size(cost.measured_smallest) + " to " + format_size(cost.measured_largest);
}

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

/// A road of the same kind (same_kind), the same one for all of that kind.
Road kind_of(const Road& road) {
  return match(
      road, [](const AllReduce& all_reduce) -> Road { return all_reduce; },
      [](const ParameterServer& servers) -> Road {
        return ParameterServer{1, servers.placement, Assignment::kEven, servers.local_sum};
      });
}

/// How a road's servers get their messages; nothing where it has none.
std::optional<Assignment> assignment_of(const Road& road) {
  return match(
      road, [](const AllReduce&) { return std::optional<Assignment>{}; },
      [](const ParameterServer& servers) { return std::optional(servers.assignment); });
}

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

bool of_library(const Road& road) { return road == Road{AllReduce{Collective::kLibrary}}; }

/// What a fit calibrates of a formula.
enum class SendMode { kAlone, kStreamed };

bool calibrates(const OperationFit& fit, const Road& road, SendMode mode) {
  if (fit.operation != operations_of(fit.road).both || fit.workers < 2) return false;
  if (mode == SendMode::kAlone) return same_kind(fit.road, road);
  return !fit.streamed.curve.empty() &&
         (same_kind(fit.road, road) || !(of_library(road) || of_library(fit.road)));
}

/// The fit that is nearest in number of workers and servers (in ratio), of workers that share one host, or do
/// not, as these do: what links inside a host are off by says nothing of those between hosts. One of servers
/// that are assigned their messages alike before all others; of two that are as near the one nearer in
/// workers, then the one with more servers, whatever order they were measured in. What a stream of messages
/// costs above the links' share is the executor's work for each transfer: where no road of this kind was
/// streamed another one tells.
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

/// What a measurement elsewhere was to the formula there, for start-up and for bytes.
struct Calibration {
  double alpha = 1, beta = 1;

  Curve operator()(const Curve& formula) const { return recalibrated(formula, alpha, beta); }
};

/// By bytes beyond the measured sizes, where the curve goes on as its formula does: streams of the largest
/// may still be more start-ups than bytes.
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

/// By the streams of a fit.
Calibration calibration_of_streams(const OperationFit& fit, const Cluster& cluster) {
  return calibration(fit.streamed, formula_of(fit.road, cluster, fit.workers).both.occupancy);
}

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
std::optional<Formula> streams_by_formula(PricedRoad& priced) {
  try {
    const OperationFit* stream =
        nearest_fit(priced.road, priced.cluster, priced.workers, SendMode::kStreamed);
    if (stream == nullptr) return std::nullopt;
    const Calibration calibrated = calibration_of_streams(*stream, priced.cluster);
    Formula formula = priced.formula();
    for (StageCost* stage : {&formula.both, &formula.reduce, &formula.distribute}) {
      stage->occupancy = calibrated(stage->occupancy);
    }
    return formula;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound) throw;
    return std::nullopt;
  }
}

/// Of the road's formula; costs nothing where the links that it needs were not measured.
StageCost formula_of_stage(PricedRoad& priced, StageCost Formula::*stage) {
  try {
    return priced.formula().*stage;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound) throw;
    return {};
  }
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
    slope = std::min(slope, time / from);  // a curve's start-ups are not negative
    pieces.push_back({bends[i], Seconds{time - slope * from}, SecondsPerByte{slope}});
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

/// What a stage's bytes take on the links. Without a start-up, as chunks hide one step's latency behind
/// another's bytes.
Curve bytes_on(const StageCost& wire) { return line(0, least_time_per_byte(wire.occupancy).value); }

/// A stage that was measured faster than its bytes can pass the links: fits of few or noisy samples promise
/// that.
StageCost over_wire(const StageCost& stage, const StageCost& wire) {
  const Curve bytes = bytes_on(wire);
  if (stage.alone.empty()) return stage;
  return {upper(stage.alone, bytes), upper(stage.occupancy, bytes)};
}

/// Whether messages were really seen to pass faster than the links would let them, the largest of which that
/// is known: then several links do more together than one of them was measured to do.
bool beats_links(const Fit& fit, const StageCost& wire) {
  return !fit.curve.empty() && fit.curve(fit.largest) < bytes_on(wire)(fit.largest);
}

/// The same of messages that were streamed: then not all of them are in need of the slowest host's card in
/// all their rounds. By more than samples of few bytes scatter.
bool streams_beat_links(const Fit& streamed, const StageCost& wire) {
  constexpr double kScatter = 0.1;
  return !streamed.curve.empty() &&
         streamed.curve(streamed.largest) < (1 - kScatter) * bytes_on(wire)(streamed.largest);
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

/// Holds a cost to what the links can pass.
void keep_to_links(RoadCost& cost, const Formula& wire) {
  cost.both = over_wire(cost.both, wire.both);
  cost.reduce = over_wire(cost.reduce, wire.reduce);
  cost.distribute = over_wire(cost.distribute, wire.distribute);
}

/// Of messages alone, bytes beyond the largest that was measured pass no faster than the links let them:
/// buffers that took the first ones sooner are full by then.
void pass_at_rate(StageCost& stage, Bytes largest, const StageCost& wire) {
  if (stage.alone.empty()) return;
  const SecondsPerByte rate = least_time_per_byte(wire.occupancy);
  const CurvePiece& last = stage.alone.pieces().back();
  if (last.from <= largest && last.beta >= rate) return;
  const Seconds start = stage.alone(largest) - rate * largest;
  if (start < Seconds{0}) return;  // it takes less than its bytes do
  std::vector<CurvePiece> pieces = stage.alone.pieces();
  std::erase_if(pieces, [&](const CurvePiece& piece) { return piece.from >= largest; });
  pieces.push_back({largest, start, rate});
  stage.alone = upper(stage.alone, Curve{std::move(pieces)});
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

/// The measured cost of a road, or nothing when it was not measured at this N.
std::optional<RoadCost> measured(PricedRoad& priced) {
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

/// How an all-reduce algorithm sends.
struct Sending {
  Rounds rounds;
  int connections;  ///< over which a rank sends while several messages are under way
};
Sending sending_of(Collective algorithm, const Topology& place) {
  const int n = place.workers;
  const int depth = std::bit_width(static_cast<unsigned>(n - 1));  // log2 N, rounded up
  const int halvings = std::bit_width(static_cast<unsigned>(n)) - 1;
  const int folds = std::has_single_bit(static_cast<unsigned>(n)) ? 0 : 1;
  switch (algorithm) {
    case Collective::kRing:
      return {{n - 1, n - 1}, 1};
    case Collective::kHalvingDoubling:
      return {{halvings + folds, halvings + folds}, halvings};
    case Collective::kRecursiveDoubling:
      return {{halvings + 2 * folds, 0}, halvings};
    case Collective::kDoubleBinaryTree:
      return {{depth, depth}, std::min(n - 1, kTreeNeighbours)};
    case Collective::kHierarchical: {  // between hosts, and inside them
      const int steps = place.hosts - 1 + place.per_host - 1;
      return {{steps, steps}, 1};
    }
    case Collective::kOneShot:
      return {{1, 0}, n - 1};
    case Collective::kLibrary:  // nobody knows
      return {{1, 0}, 1};
  }
  std::abort();
}

/// What a message takes alone over such a link; empty where none was measured.
Curve alone_over(LinkClass link, const Cluster& cluster) {
  const auto found = cluster.links.find(link);
  return found == cluster.links.end() ? Curve{} : found->second.alone.curve;
}

/// What a road's last round takes by what its rounds take on average. What a message's start-up has beyond
/// the links' latencies is work, of which every round has as much.
///
/// between  of its rounds, those between hosts
/// last     the links of the last one
double last_round(const RoadCost& cost, const Cluster& cluster, int between, LinkClass last) {
  const int rounds = cost.rounds.both();
  const double all = cost.both.alone.least_alpha().count(), each = all / rounds;
  const double inside = alone_over(LinkClass::kIntraHost, cluster).least_alpha().count(),
               outside = alone_over(LinkClass::kInterHost, cluster).least_alpha().count();
  if (inside == 0 || !(each > 0)) return 1;
  const double work = std::max(0.0, (all - between * outside - (rounds - between) * inside) / rounds);
  if (last == LinkClass::kIntraHost) return std::min(1.0, (inside + work) / each);
  const double all_of_stage = cost.rounds.distribute > 0 ? cost.rounds.distribute : cost.rounds.reduce;
  return std::clamp((outside + work) / each, 1.0, all_of_stage);
}

/// Of the rounds of halving or doubling a stage, those between hosts; 0 where hosts of the same power of two
/// of workers do not tell them apart.
int doublings_between_hosts(const Topology& place) {
  const auto n = static_cast<unsigned>(place.workers), each = static_cast<unsigned>(place.per_host);
  const bool alike = place.fewest == place.per_host && std::has_single_bit(n) && std::has_single_bit(each);
  return alike ? std::bit_width(n) - std::bit_width(each) : 0;
}

/// Of an algorithm's rounds, those between hosts on the way of what arrives last.
int rounds_between_hosts(Collective algorithm, const Rounds& rounds, const Topology& place) {
  if (place.hosts == 1) return 0;
  const int doublings = doublings_between_hosts(place);
  switch (algorithm) {
    case Collective::kHierarchical:
      return 2 * (place.hosts - 1);
    case Collective::kHalvingDoubling:
      return doublings == 0 ? rounds.both() : 2 * doublings;
    case Collective::kRecursiveDoubling:
      return doublings == 0 ? rounds.both() : doublings;
    case Collective::kRing:  // from rank to rank, and so as often as hosts are among them
      return (rounds.both() * place.hosts + place.workers - 1) / place.workers;
    case Collective::kDoubleBinaryTree:
    case Collective::kOneShot:
    case Collective::kLibrary:
      return rounds.both();
  }
  std::abort();
}

/// What the last round of an algorithm takes by what its rounds take on average, on hosts of several workers.
double last_round(const RoadCost& cost, Collective algorithm, const Topology& place, const Cluster& cluster) {
  const int between = rounds_between_hosts(algorithm, cost.rounds, place);
  switch (algorithm) {
    case Collective::kHierarchical:
      return last_round(cost, cluster, between, LinkClass::kIntraHost);
    case Collective::kHalvingDoubling:
    case Collective::kRecursiveDoubling:
      return doublings_between_hosts(place) == 0 ? 1
                                                 : last_round(cost, cluster, between, LinkClass::kInterHost);
    case Collective::kRing:
    case Collective::kDoubleBinaryTree:
    case Collective::kOneShot:
    case Collective::kLibrary:
      return cost.rounds.last;
  }
  std::abort();
}

/// So long a message is on its way between hosts in so many rounds. What it takes inside a host is work.
Seconds on_the_way(int rounds, const Cluster& cluster, const Topology& place) {
  const Seconds between = place.slowest.latency * alone_over(LinkClass::kInterHost, cluster).least_alpha();
  const Seconds work = alone_over(LinkClass::kIntraHost, cluster).least_alpha();
  return rounds * std::max(Seconds{0}, between - work);
}

/// Each on its own, for exactly these workers.
bool stages_were_measured(const PricedRoad& priced) {
  const Operations named = operations_of(priced.road);
  const auto measured = [&](Operation operation) {
    return find_operation(priced.cluster, priced.road, operation, priced.workers) != nullptr;
  };
  return measured(named.reduce) && measured(named.distribute);
}

/// Of a ring over all workers: of hosts whose cards are not alike, or of which some have several workers.
Skew skew_of_ring(const Cluster& cluster, const Topology& place) {
  const auto link = [&](LinkClass which) {
    const Curve alone = alone_over(which, cluster);
    return RingLink{alone.least_alpha(), least_time_per_byte(alone)};
  };
  return {ring_skew(place, link(LinkClass::kIntraHost), link(LinkClass::kInterHost)),
          place.slowest.time_per_byte * Seconds{cluster.connection_head_of_line_seconds.value}};
}

/// What messages of the road wait for and how they may overlap; their times are known already.
void add_channel(RoadCost& cost, const AllReduce& road, PricedRoad& priced) {
  const Topology& place = priced.place();
  const Sending sending = sending_of(road.algorithm, place);
  cost.rounds = sending.rounds;
  // Both stages at once, the library's all-reduce is one round.
  if (road.algorithm == Collective::kLibrary && stages_were_measured(priced)) cost.rounds = {1, 1, 2};
  if (may_sum_locally(place)) cost.rounds.last = last_round(cost, road.algorithm, place, priced.cluster);
  const int between = rounds_between_hosts(road.algorithm, cost.rounds, place);
  cost.on_the_way = on_the_way(between, priced.cluster, place);
  if (road.algorithm == Collective::kRing) cost.skew = skew_of_ring(priced.cluster, place);
  cost.head_of_line = sending.connections * Seconds{priced.cluster.connection_head_of_line_seconds.value};
  cost.opaque = road.algorithm == Collective::kLibrary;
}

void add_channel(RoadCost& cost, const ParameterServer& road, PricedRoad& priced) {
  cost.shared_channel = road.placement == Placement::kColocated;
  cost.through_servers = true;
  const bool sums = road.local_sum == LocalSum::kFirst && may_sum_locally(priced.place());
  if (sums && cost.shared_channel) {  // where each stage has a channel of its own it has one round
    cost.rounds = {2, 2, 1, true};    // inside the hosts, and to the servers
    cost.rounds.last = last_round(cost, priced.cluster, 2, LinkClass::kIntraHost);
  }
  const Topology& place = priced.place();
  if (place.hosts > 1) cost.on_the_way = on_the_way(2, priced.cluster, place);  // a push and an answer
  cost.head_of_line = Seconds{priced.cluster.head_of_line_seconds.value};
  cost.in_turn = whole_message_servers(road);
  ServerHosts& where = cost.server_hosts;
  where = {static_cast<std::uint32_t>(place.hosts), static_cast<std::uint32_t>(place.per_host)};
  // What all wait for are pushes one way and answers the other: those of the one host that has servers, or of
  // a slow one that has none.
  const bool even = road.assignment == Assignment::kEven;
  const bool to_one_host = where.with_servers(static_cast<std::uint32_t>(road.servers)) == 1;
  const bool apart = to_one_host || (even && load_of(road, place).workers_bind);
  where.connections_bind = place.hosts > 1 && (apart || place.slowest.time_per_byte < kSlowCard);
  if (cost.shared_channel && where.connections_bind && apart) cost.in_turn = std::max(cost.in_turn, 1);
  cost.segments = even ? road.servers : 1;
  cost.traits = priced.cluster.traits;
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

Operations operations_of(const Road& road) {
  return match(
      road,
      [](const AllReduce&) {
        return Operations{Operation::kAllReduce, Operation::kReduceScatter, Operation::kAllGather};
      },
      [](const ParameterServer&) {
        return Operations{Operation::kPushPull, Operation::kPush, Operation::kPull};
      });
}

bool same_kind(const Road& a, const Road& b) { return kind_of(a) == kind_of(b); }

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
  std::optional<RoadCost> direct = measured(priced);
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
