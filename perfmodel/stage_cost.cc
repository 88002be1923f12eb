#include "perfmodel/stage_cost.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <utility>

#include "perfmodel/curve_ops.h"
#include "perfmodel/error.h"

namespace commtune {

namespace {

template <class... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};
template <class... Visitors>
Overloaded(Visitors...) -> Overloaded<Visitors...>;

/// What the formulas of a road give: MODEL section 4.
struct Formula {
  StageCost both, reduce, distribute;
  bool server_binds = false;
  Bytes smallest, largest;  ///< message sizes whose parts lie in the links' measured range
};

/// One class of links as the formulas use it.
struct Link {
  Curve step;      ///< one message while the card also receives one: latency and all
  Curve streamed;  ///< the same with many in flight: occupancy only
  Bytes smallest, largest;

  double overhead() const { return streamed.least_alpha().count(); }
};

Curve line(double alpha, double beta) { return Curve{Seconds{alpha}, SecondsPerByte{beta}}; }

StageCost sum_of(const StageCost& a, const StageCost& b) {
  return {sum(a.alone, b.alone), sum(a.occupancy, b.occupancy)};
}

StageCost times(const StageCost& cost, double factor) {
  return {commtune::times(cost.alone, factor), commtune::times(cost.occupancy, factor)};
}

class Formulas {
 public:
  Formulas(const Cluster& cluster, int workers)
      : cluster_(cluster),
        place_(topology_of(cluster, workers)),
        gamma_(cluster.reduce_seconds_per_byte.value) {}

  Formula all_to_all(const AllToAll& road) const {
    switch (road.algorithm) {
      case Collective::kRing:
      case Collective::kLibrary:  // whose algorithm is its own; carried by the ring's shape
        return ring(pace(), place_.workers);
      case Collective::kHalvingDoubling:
        return halving_doubling();
      case Collective::kRecursiveDoubling:
        return recursive_doubling();
      case Collective::kDoubleBinaryTree:
        return double_binary_tree();
      case Collective::kHierarchical:
        return hierarchical();
    }
    std::abort();
  }

  Formula parameter_server(const ParameterServer& road) const {
    return road.placement == Placement::kDedicated ? dedicated(road) : colocated(road);
  }

 private:
  Link link(LinkClass which) const {
    const auto found = cluster_.links.find(which);
    if (found == cluster_.links.end() || found->second.alone.curve.empty()) {
      throw Error(ErrorCode::kNotFound, "cluster " + cluster_.name + " has no fit of its " +
                                            to_string(which) +
                                            " links: probe it before predicting this road");
    }
    const LinkFit& fit = found->second;
    const Curve& streamed = fit.streamed.curve.empty() ? fit.alone.curve : fit.streamed.curve;
    return {upper(fit.alone.curve, fit.duplex.curve), upper(streamed, fit.duplex.curve), fit.alone.smallest,
            fit.alone.largest};
  }
  Link between_hosts() const {
    return link(place_.hosts > 1 ? LinkClass::kInterHost : LinkClass::kIntraHost);
  }

  /// The slower of the links that a ring over all workers crosses.
  Link pace() const {
    Link slow = between_hosts();
    if (place_.hosts > 1 && place_.per_host > 1 && cluster_.links.contains(LinkClass::kIntraHost)) {
      const Link inside = link(LinkClass::kIntraHost);
      slow.step = upper(slow.step, inside.step);
      slow.streamed = upper(slow.streamed, inside.streamed);
    }
    return slow;
  }

  /// `steps` transfers one after the other, each of `share` of the message, `summed` of it being added up.
  StageCost rounds(const Link& by, int steps, double share, double summed) const {
    const Curve adding = line(0, gamma_ * summed);
    return {sum(commtune::times(of_share(by.step, share), steps), adding),
            sum(commtune::times(of_share(by.streamed, share), steps), adding)};
  }

  static Formula two_stages(StageCost reduce, StageCost distribute, const Link& by, double share) {
    Formula formula;
    formula.both = sum_of(reduce, distribute);
    formula.reduce = std::move(reduce);
    formula.distribute = std::move(distribute);
    formula.smallest =
        Bytes{static_cast<std::uint64_t>(std::ceil(static_cast<double>(by.smallest.count) / share))};
    formula.largest = Bytes{static_cast<std::uint64_t>(static_cast<double>(by.largest.count) / share)};
    return formula;
  }

  /// (N-1) alpha + (N-1)/N m (beta + gamma), then the same without gamma.
  Formula ring(const Link& by, int n) const {
    const double share = 1.0 / n;
    return two_stages(rounds(by, n - 1, share, (n - 1) * share), rounds(by, n - 1, share, 0), by, share);
  }

  /// Largest power of two of workers, and whether the others must be folded into them first.
  int power() const { return static_cast<int>(std::bit_floor(static_cast<unsigned>(place_.workers))); }
  bool folded() const { return power() != place_.workers; }

  /// The link that partners at this distance use, and how many pairs of a host share its card.
  std::pair<Link, int> at_distance(int distance) const {
    const bool inside = distance < place_.per_host;
    return {inside ? link(LinkClass::kIntraHost) : between_hosts(),
            inside || place_.hosts == 1 ? 1 : place_.per_host};
  }

  /// log2 N rounds of m/2, m/4, ... over distances N/2, N/4, ...; a fold of the whole message before and
  /// after when N is no power of two. log2(N) alpha + (N-1)/N m (beta + gamma).
  Formula halving_doubling() const {
    StageCost reduce, distribute;
    double share = 0.5;
    for (int distance = power() / 2; distance >= 1; distance /= 2, share /= 2) {
      const auto [by, pairs] = at_distance(distance);
      reduce = sum_of(reduce, rounds(by, 1, share * pairs, share));
      distribute = sum_of(distribute, rounds(by, 1, share * pairs, 0));
    }
    const Link by = between_hosts();
    if (folded()) {
      reduce = sum_of(reduce, rounds(by, 1, 1, 1));
      distribute = sum_of(distribute, rounds(by, 1, 1, 0));
    }
    return two_stages(reduce, distribute, by, 2 * share);
  }

  /// log2 N rounds of the whole message; nothing is left to distribute. log2(N) (alpha + m (beta + gamma)).
  Formula recursive_doubling() const {
    StageCost all;
    for (int distance = power() / 2; distance >= 1; distance /= 2) {
      const auto [by, pairs] = at_distance(distance);
      all = sum_of(all, rounds(by, 1, pairs, 1));
    }
    const Link by = between_hosts();
    if (folded()) all = sum_of(all, sum_of(rounds(by, 1, 1, 1), rounds(by, 1, 1, 0)));
    return two_stages(all, {}, by, 1);
  }

  /// Pipelined: ceil(log2 N) latencies and each byte once. log2(N) alpha + m (beta + gamma).
  Formula double_binary_tree() const {
    const Link by = pace();
    const auto depth = static_cast<int>(std::bit_width(static_cast<unsigned>(place_.workers - 1)));
    const Curve deeper = line((depth - 1) * by.step.least_alpha().count(), 0);
    StageCost reduce = rounds(by, 1, 1, 1), distribute = rounds(by, 1, 1, 0);
    reduce.alone = sum(reduce.alone, deeper);
    distribute.alone = sum(distribute.alone, deeper);
    return two_stages(reduce, distribute, by, 1);
  }

  /// Reduce-scatter inside a host, ring between hosts on m/g bytes (all g at once on one card), then back.
  Formula hierarchical() const {
    const int n = place_.hosts, g = place_.per_host;
    if (n == 1 || g == 1) return ring(between_hosts(), place_.workers);
    const Formula inside = ring(link(LinkClass::kIntraHost), g);
    const Formula outside = ring(between_hosts(), n);
    Formula formula = outside;
    formula.reduce = sum_of(inside.reduce, outside.reduce);
    formula.distribute = sum_of(inside.distribute, outside.distribute);
    formula.both = sum_of(formula.reduce, formula.distribute);
    return formula;
  }

  /// One direction of one stage through servers: the busiest card passes `share` of a message (of
  /// `stream_share` on average when messages follow each other) as `parts` transfers.
  StageCost passage(const Link& by, double share, double stream_share, double parts, double stream_parts,
                    double summed) const {
    const Curve alone = sum(of_share(by.step, share), line((parts - 1) * by.overhead(), 0));
    const Curve flow = sum(of_share(by.streamed, stream_share), line((stream_parts - 1) * by.overhead(), 0));
    const double alpha = alone.least_alpha().count();
    return {upper(alone, line(alpha, gamma_ * summed)),
            upper(flow, line(flow.least_alpha().count(), gamma_ * summed))};
  }

  /// push: alpha + max(m beta_w, N m / S beta_s, N m / S gamma) + N o; pull the same without gamma. A hashed
  /// message goes whole to one server, which only a stream of messages spreads over all of them.
  Formula dedicated(const ParameterServer& road) const {
    const Link by = between_hosts();
    const double n = place_.workers, g = place_.hosts > 1 ? place_.per_host : 1, s = road.servers;
    const bool hashed = road.assignment == Assignment::kHashed;
    const double stream = std::max(g, n / s), share = hashed ? std::max(g, n) : stream;
    const double parts = hashed ? n : std::max(n, s), stream_parts = hashed ? std::max(1.0, n / s) : parts;
    const double summed = hashed ? n : n / s;
    Formula formula = two_stages(passage(by, share, stream, parts, stream_parts, summed),
                                 passage(by, share, stream, parts, stream_parts, 0), by, 1 / s);
    formula.server_binds = n / s > g || gamma_ * n / s > by.step.least_beta().value * stream;
    return formula;
  }

  /// Servers share the cards of the first workers: a host with s of the S servers sends g (S-s)/S m of its
  /// own push and s (N-g)/S m of its servers' answers in one direction.
  Formula colocated(const ParameterServer& road) const {
    const Link by = between_hosts();
    const double n = place_.workers, g = place_.hosts > 1 ? place_.per_host : 1, s = road.servers;
    const double here = std::min(g, s), hosts_with_servers = std::ceil(s / g);
    const double own = g * (s - here) / s, answers = here * (n - g) / s;
    const double elsewhere = n / g > hosts_with_servers ? g : 0;  // a host without servers sends all of it
    const bool hashed = road.assignment == Assignment::kHashed;
    const double one = hashed ? std::max(n - g, g) : std::max({own, answers, elsewhere});
    const double stream = std::max({own, answers, elsewhere});
    const double parts = hashed ? n - 1 : std::max(n, s) - 1,
                 stream_parts = hashed ? std::max(1.0, n / s) : parts;
    const double summed = hashed ? n : n / s;
    Formula formula =
        two_stages(passage(by, one, stream, std::max(1.0, parts), std::max(1.0, stream_parts), summed),
                   passage(by, one, stream, std::max(1.0, parts), std::max(1.0, stream_parts), 0), by, 1 / s);
    const double together = std::max(own + answers, elsewhere);
    const double all_parts = hashed ? 2 * stream_parts : std::max(1.0, n + s - 2);
    formula.both.occupancy =
        passage(by, together, together, std::max(1.0, all_parts), std::max(1.0, all_parts), summed).occupancy;
    const bool bytes_bind = elsewhere > 0 && own + answers > elsewhere;
    formula.server_binds = bytes_bind || gamma_ * n / s > by.step.least_beta().value * together;
    return formula;
  }

  const Cluster& cluster_;
  const Topology place_;
  const double gamma_;
};

std::string counted(int count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

std::string range_text(const RoadCost& cost) {
  return format_size(cost.measured_smallest) + " to " + format_size(cost.measured_largest);
}

void check_road(const Road& road, int workers) {
  if (workers < 1) {
    throw Error(ErrorCode::kBadInput, "workers = " + std::to_string(workers) + ": must be at least 1");
  }
  const auto* servers = std::get_if<ParameterServer>(&road);
  if (servers == nullptr) return;
  const bool colocated = servers->placement == Placement::kColocated;
  if (servers->servers < 1 || (colocated && servers->servers > workers)) {
    throw Error(ErrorCode::kBadInput,
                "servers = " + std::to_string(servers->servers) + ": must be at least 1" +
                    (colocated ? " and at most the " + counted(workers, "worker") : ""));
  }
}

/// The operations of a road: both stages at once, then each alone.
struct Operations {
  Operation both, reduce, distribute;
};

Operations operations_of(const Road& road) {
  return std::holds_alternative<AllToAll>(road)
             ? Operations{Operation::kAllReduce, Operation::kReduceScatter, Operation::kAllGather}
             : Operations{Operation::kPushPull, Operation::kPush, Operation::kPull};
}

/// Streaming hides latencies, not bytes: however many messages are in flight, each keeps the channel busy for
/// its bytes at the best rate that one message alone has reached. Without that floor a line through small
/// streamed messages, whose cost hardly depends on their size, would promise large ones more than the link's
/// bandwidth.
StageCost stage_of(const OperationFit& fit) {
  const Curve& alone = fit.alone.curve;
  if (fit.streamed.curve.empty()) return {alone, alone};
  const Curve bytes = line(0, alone.least_beta().value);
  return {alone, lower(upper(fit.streamed.curve, bytes), alone)};
}

/// One-stage algorithms end with the sum everywhere: there is nothing to distribute.
bool one_stage(const Road& road) {
  const auto* a = std::get_if<AllToAll>(&road);
  return a != nullptr &&
         (a->algorithm == Collective::kRecursiveDoubling || a->algorithm == Collective::kLibrary);
}

Formula formula_of(const Road& road, const Cluster& cluster, int workers) {
  const Formulas formulas{cluster, workers};
  return std::visit(Overloaded{
                        [&](const AllToAll& a) { return formulas.all_to_all(a); },
                        [&](const ParameterServer& p) { return formulas.parameter_server(p); },
                    },
                    road);
}

/// A stage that was not measured on its own: its share of the whole by the formula, or half where the links
/// that the formula needs were not measured either.
StageCost share_of(const StageCost& both, const Road& road, const Cluster& cluster, int workers,
                   Stage stage) {
  if (one_stage(road)) return stage == Stage::kReduce ? both : StageCost{};
  double share = 0.5;
  try {
    const Formula formula = formula_of(road, cluster, workers);
    const double reduce = formula.reduce.alone(4_MiB).count(), rest = formula.distribute.alone(4_MiB).count();
    if (reduce + rest > 0) share = reduce / (reduce + rest);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound) throw;
  }
  return times(both, stage == Stage::kReduce ? share : 1 - share);
}

void widen(std::optional<std::pair<Bytes, Bytes>>& range, const Fit& fit) {
  range = range ? std::pair{std::max(range->first, fit.smallest), std::min(range->second, fit.largest)}
                : std::pair{fit.smallest, fit.largest};
}

/// The measured cost of a road, or nothing when it was not measured at this N.
std::optional<RoadCost> measured(const Road& road, const Cluster& cluster, int workers) {
  const Operations named = operations_of(road);
  const OperationFit* both = find_operation(cluster, road, named.both, workers);
  const OperationFit* reduce = find_operation(cluster, road, named.reduce, workers);
  const OperationFit* distribute = find_operation(cluster, road, named.distribute, workers);
  if (both == nullptr && (reduce == nullptr || distribute == nullptr)) return std::nullopt;

  RoadCost cost;
  std::optional<std::pair<Bytes, Bytes>> range;
  for (const OperationFit* fit : {both, reduce, distribute}) {
    if (fit != nullptr) widen(range, fit->alone);
  }
  cost.measured_smallest = range->first;
  cost.measured_largest = range->second;
  cost.both = both != nullptr ? stage_of(*both) : sum_of(stage_of(*reduce), stage_of(*distribute));
  cost.reduce =
      reduce != nullptr ? stage_of(*reduce) : share_of(cost.both, road, cluster, workers, Stage::kReduce);
  cost.distribute = distribute != nullptr ? stage_of(*distribute)
                                          : share_of(cost.both, road, cluster, workers, Stage::kDistribute);
  cost.basis = Basis::kMeasured;
  cost.explanation = "measured " + to_string(both != nullptr ? named.both : named.reduce) + ", " +
                     describe(road) + ", " + counted(workers, "worker") + ", " + range_text(cost);
  return cost;
}

/// Roads that differ in nothing but the number of servers.
bool same_kind(const Road& a, const Road& b) {
  const auto* p = std::get_if<ParameterServer>(&a);
  const auto* q = std::get_if<ParameterServer>(&b);
  if (p == nullptr || q == nullptr) return a == b;
  return p->placement == q->placement && p->assignment == q->assignment;
}

int servers_of(const Road& road) {
  const auto* p = std::get_if<ParameterServer>(&road);
  return p != nullptr ? p->servers : 1;
}

/// The fit of the same operation that is nearest in number of workers and servers (in ratio).
const OperationFit* nearest_fit(const Road& road, const Cluster& cluster, int workers) {
  const auto ratio = [](double a, double b) { return std::abs(std::log(a / b)); };
  const auto distance = [&](const OperationFit& fit) {
    return ratio(fit.workers, workers) + ratio(servers_of(fit.road), servers_of(road));
  };
  const OperationFit* nearest = nullptr;
  for (const OperationFit& fit : cluster.operations) {
    if (!same_kind(fit.road, road) || fit.operation != operations_of(road).both || fit.workers < 2) continue;
    if (nearest == nullptr || distance(fit) < distance(*nearest)) nearest = &fit;
  }
  return nearest;
}

/// What a measurement at another N was to the formula there, for start-up and for bytes.
struct Calibration {
  double alpha = 1, beta = 1;
};

Calibration calibration(const OperationFit& fit, const Formula& formula) {
  const auto slope = [&](const Curve& curve) {
    const Bytes half{fit.alone.largest.count / 2};
    return (curve(fit.alone.largest) - curve(half)).count();
  };
  const double alpha = formula.both.alone.least_alpha().count(), beta = slope(formula.both.alone);
  Calibration scale;
  if (alpha > 0) scale.alpha = fit.alone.curve.least_alpha().count() / alpha;
  if (beta > 0) scale.beta = slope(fit.alone.curve) / beta;
  return scale;
}

RoadCost by_formula(const Road& road, const Cluster& cluster, int workers) {
  const Formula formula = formula_of(road, cluster, workers);
  const OperationFit* other = nearest_fit(road, cluster, workers);
  const bool library = road == Road{AllToAll{Collective::kLibrary}};
  if (library && other == nullptr) {
    throw Error(ErrorCode::kNotFound,
                "cluster " + cluster.name +
                    " has no measurement of the library's own all-reduce, and no formula "
                    "knows what the library would choose: probe it");
  }
  const Calibration scale = other != nullptr
                                ? calibration(*other, formula_of(other->road, cluster, other->workers))
                                : Calibration{};
  const auto calibrated = [&](const StageCost& stage) {
    return StageCost{recalibrated(stage.alone, scale.alpha, scale.beta),
                     recalibrated(stage.occupancy, scale.alpha, scale.beta)};
  };
  RoadCost cost;
  cost.both = calibrated(formula.both);
  cost.reduce = library ? cost.both : calibrated(formula.reduce);
  cost.distribute = library ? StageCost{} : calibrated(formula.distribute);
  cost.server_binds = formula.server_binds;
  cost.basis = Basis::kFormula;
  cost.measured_smallest = formula.smallest;
  cost.measured_largest = formula.largest;
  cost.explanation = "formula over link fits, " + describe(road) + ", " + counted(workers, "worker") +
                     (other != nullptr ? ", calibrated at " + counted(other->workers, "worker") : "") + ", " +
                     range_text(cost);
  return cost;
}

/// Whether servers rather than workers' cards would set the pace, where a formula can tell.
bool servers_bind(const Road& road, const Cluster& cluster, int workers) {
  const auto* p = std::get_if<ParameterServer>(&road);
  if (p == nullptr) return false;
  try {
    return formula_of(road, cluster, workers).server_binds;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound) throw;
    return workers > p->servers;
  }
}

}  // namespace

Topology topology_of(const Cluster& cluster, int workers) {
  Topology place{workers, 0, 1};
  int left = workers;
  const auto fill = [&](int slots) {
    const int here = std::min(left, std::max(1, slots));
    place.per_host = std::max(place.per_host, here);
    left -= here;
    ++place.hosts;
  };
  for (const Host& host : cluster.hosts) {
    if (left > 0) fill(host.slots);
  }
  if (left > 0 && cluster.hosts.size() == 1 && !cluster.links.contains(LinkClass::kInterHost)) {
    place.per_host = workers;
    return place;
  }
  const int slots = cluster.hosts.empty() ? 1 : cluster.hosts.front().slots;
  while (left > 0) fill(slots);
  return place;
}

double expected_maximum(int n) {
  if (n <= 1) return 0;
  // Quantile of the standard normal at Blom's plotting position, by Newton on the distribution function.
  const double p = (n - 0.375) / (n + 0.25);
  double x = std::sqrt(2 * std::log(static_cast<double>(n)));
  for (int i = 0; i < 50; ++i) {
    const double density = std::exp(-x * x / 2) / std::sqrt(2 * std::acos(-1.0));
    const double step = (0.5 * std::erfc(-x / std::sqrt(2.0)) - p) / density;
    x -= std::clamp(step, -0.5, 0.5);
  }
  return x;
}

RoadCost road_cost(const Road& road, const Cluster& cluster, int workers) {
  check_road(road, workers);
  RoadCost cost;
  if (workers == 1) {
    cost.explanation = "one worker: nothing travels";
    cost.measured_largest = Bytes{~std::uint64_t{0}};
    return cost;
  }
  const std::optional<RoadCost> direct = measured(road, cluster, workers);
  cost = direct ? *direct : by_formula(road, cluster, workers);
  if (direct) cost.server_binds = servers_bind(road, cluster, workers);
  const auto* p = std::get_if<ParameterServer>(&road);
  cost.shared_channel = p == nullptr || p->placement == Placement::kColocated;
  cost.credit_ends_early = p != nullptr;
  cost.may_part = p == nullptr && !one_stage(road);
  cost.copy = SecondsPerByte{cluster.copy_seconds_per_byte.value};
  cost.interference = cluster.interference.value;
  cost.straggling = Seconds{cluster.jitter_seconds.value * expected_maximum(workers)};
  return cost;
}

}  // namespace commtune
