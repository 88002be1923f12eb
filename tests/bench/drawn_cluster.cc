#include "tests/bench/drawn_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include "perfmodel/base/overloaded.h"

namespace commtune::bench {

namespace {

using probes::kStreaming;
using probes::Quantity;
using probes::Subject;
using probes::Target;

double between(Random& random, double low, double high) { return low + (high - low) * random.uniform(); }

double log_between(Random& random, double low, double high) {
  return low * std::pow(high / low, random.uniform());
}

/// What roads of a kind have in common beside what the links say.
struct KindFactors {
  double startup, per_byte, hides, bend, jump, small_byte_more;
  double handing_over, stream_byte, stream_hides;  ///< handing over: seconds of each message on the way
};

KindFactors draw_kind(Random& random) {
  KindFactors kind{};
  kind.startup = between(random, 0.8, 1.7);
  kind.per_byte = between(random, 1, 1.35);
  kind.hides = between(random, 1, 2.5);
  kind.bend = log_between(random, 8 << 10, 256 << 10);
  kind.jump = random.uniform() < 0.5 ? 0 : between(random, 0, 0.6);
  kind.small_byte_more = random.uniform() < 0.5 ? 0 : between(random, 0, 0.5);
  kind.handing_over = log_between(random, 4e-6, 30e-6);
  kind.stream_byte = between(random, 0.85, 1);
  kind.stream_hides = between(random, 1, 4);
  return kind;
}

/// Roads of one kind differ by so much more from each other.
TrueCost cost_of(const Target& target, const KindFactors& kind, Seconds latency, Random& random) {
  const auto own = [&] { return between(random, 0.95, 1.05); };
  const bool streamed = target.quantity.in_flight == kStreaming;
  TrueCost cost;
  const double alone = target.latency.count() * kind.startup;
  // What processors do for each message that follows another one; a message alone takes longer.
  const double handing_over = std::min(kind.handing_over * (target.latency / latency), 0.5 * alone);
  cost.startup = own() * (streamed ? handing_over : alone);
  cost.per_byte = target.beta.value * kind.per_byte * own() * (streamed ? kind.stream_byte : 1);
  cost.hides = streamed ? kind.stream_hides : kind.hides;
  cost.bend = kind.bend;
  cost.jump = (streamed ? 0.2 : 1) * kind.jump * cost.startup;
  cost.small_byte_more = kind.small_byte_more;
  return cost;
}

/// Messages between two ranks: they take what the links say.
TrueCost link_cost(const Target& target, const KindFactors& kind, Random& random) {
  KindFactors link = kind;
  link.startup = 1;
  link.per_byte = target.quantity.subject == Subject::kExchange ? between(random, 1, 1.2) : 1;
  TrueCost cost = cost_of(target, link, target.latency, random);
  if (target.quantity.in_flight == kStreaming) {
    cost.startup = std::min(log_between(random, 1e-6, 20e-6), 0.5 * target.latency.count());
  }
  return cost;
}

std::string kind_key(const Quantity& quantity) {
  return match(
      quantity.road,
      [](const AllReduce& all) { return "all-to-all " + std::to_string(static_cast<int>(all.algorithm)); },
      [](const ParameterServer&) { return std::string("servers"); });
}

Target memory_target(Subject subject, Bytes largest) {
  Target target;
  target.quantity.subject = subject;
  target.quantity.source = 0;
  target.largest = largest;
  target.sent = 0;
  target.weight = 0.5;
  target.startup = Seconds{1e-6};
  target.latency = target.startup;
  target.beta = SecondsPerByte{3e-10};
  return target;
}

Noise draw_noise(Random& random) {
  Noise noise;
  noise.within = log_between(random, 0.005, 0.04);
  noise.visit = log_between(random, 0.005, 0.03);
  noise.state = log_between(random, 0.003, 0.02);
  noise.stall_chance = between(random, 0, 0.05);
  noise.stall_seconds = log_between(random, 0.2e-3, 2e-3);
  return noise;
}

void place_ranks(DrawnCluster& cluster, Random& random) {
  const int ranks = 2 + static_cast<int>(random.below(7));
  const int per_host = ranks >= 4 && ranks % 2 == 0 && random.uniform() < 0.25 ? 2 : 1;
  cluster.hosts = ranks / per_host;
  for (int rank = 0; rank < ranks; ++rank)
    cluster.rank_hosts.push_back("h" + std::to_string(rank / per_host));
}

probes::ClusterShape shape_of(const DrawnCluster& cluster) {
  probes::ClusterShape shape;
  shape.rank_hosts = cluster.rank_hosts;
  const bool shared = cluster.hosts < static_cast<int>(cluster.rank_hosts.size());
  shape.between = probes::Pair{0, shared ? 2 : 1};
  if (shared) shape.within = probes::Pair{0, 1};
  shape.between_guess = cluster.between;
  shape.within_guess = cluster.within;
  return shape;
}

/// Servers in numbers that the probe is not offered, and behind a sum within the host where it has several
/// ranks.
std::vector<Target> other_targets_of(const DrawnCluster& cluster) {
  const auto ranks = static_cast<int>(cluster.rank_hosts.size());
  std::vector<Target> targets;
  for (int servers = 1; servers <= ranks; servers *= 2) {
    for (const LocalSum sum : {LocalSum::kNone, LocalSum::kFirst}) {
      if (sum == LocalSum::kFirst && cluster.hosts == ranks) continue;
      const Road road{ParameterServer{servers, Placement::kColocated, Assignment::kEven, sum}};
      const bool offered = std::ranges::any_of(
          cluster.targets, [&](const Target& target) { return target.quantity.road == road; });
      if (offered) continue;
      const std::vector<Target> of_road = probes::road_targets({}, cluster.shape, road, ranks);
      targets.insert(targets.end(), of_road.begin(), of_road.end());
    }
  }
  return targets;
}

std::vector<Target> targets_of(const DrawnCluster& cluster) {
  const probes::ProbeOptions options;
  const probes::ClusterShape& shape = cluster.shape;
  probes::Offer offered = probes::offer(options, cluster.rank_hosts);
  std::erase(offered.algorithms, Collective::kLibrary);  // TCP has none
  std::vector<Target> targets = choose_targets(options, shape, offered);
  for (const Subject subject : {Subject::kSum, Subject::kCopy}) {
    targets.push_back(memory_target(subject, 16_MiB));
  }
  return targets;
}

/// What the plan is told of a target before anything of it is measured: the survey knows the links to a few
/// per cent.
void blur(std::vector<Target>& targets, Random& random) {
  const double latency = std::exp(0.05 * random.normal()), byte = std::exp(0.03 * random.normal());
  for (Target& target : targets) {
    target.startup *= latency;
    target.latency *= latency;
    target.beta.value *= byte;
  }
}

}  // namespace

double TrueCost::operator()(Bytes size) const {
  const auto bytes = static_cast<double>(size.count);
  const double leaving = per_byte * (bytes + small_byte_more * std::min(bytes, bend));
  const double both = std::pow(std::pow(startup, hides) + std::pow(leaving, hides), 1 / hides);
  return both + (bytes >= bend ? jump : 0);
}

DrawnCluster drawn_cluster(Random& random) {
  DrawnCluster cluster;
  place_ranks(cluster, random);
  const double rate = log_between(random, 1e8, 1e10);  // bits per second
  const double latency = log_between(random, 20e-6, 1e-3);
  cluster.between = {Seconds{latency}, SecondsPerByte{8 / rate}};
  cluster.within = {Seconds{between(random, 5e-6, 20e-6)}, SecondsPerByte{log_between(random, 1e-10, 1e-9)}};
  cluster.overhead = Seconds{(4 * latency + 2e-4) * between(random, 0.8, 1.5)};
  cluster.noise = draw_noise(random);
  cluster.shape = shape_of(cluster);
  cluster.targets = targets_of(cluster);
  std::map<std::string, KindFactors> kinds;
  for (const Target& target : cluster.targets) {
    const Subject subject = target.quantity.subject;
    if (subject == Subject::kOperation) {
      const auto [kind, added] = kinds.try_emplace(kind_key(target.quantity));
      if (added) kind->second = draw_kind(random);
      cluster.costs.push_back(cost_of(target, kind->second, cluster.between.latency, random));
    } else if (subject == Subject::kSum || subject == Subject::kCopy) {
      cluster.costs.push_back({1e-6, log_between(random, 5e-11, 5e-10)});
    } else {
      cluster.costs.push_back(link_cost(target, draw_kind(random), random));
    }
  }
  blur(cluster.targets, random);
  // Of a sequence of its own, so that a cluster's other costs are what they were without such roads.
  cluster.other_targets = other_targets_of(cluster);
  Random other(static_cast<std::uint64_t>(rate));
  for (const Target& target : cluster.other_targets)
    cluster.other_costs.push_back(cost_of(target, kinds.at("servers"), cluster.between.latency, other));
  cluster.name = fmt::format("{} ranks on {} hosts, {:.0f} Mb/s, {:.0f} us", cluster.rank_hosts.size(),
                             cluster.hosts, 1e-6 * rate, 1e6 * latency);
  return cluster;
}

namespace {

/// Straight lines between sizes a quarter of a factor of two apart, and on both sides of the bend: within
/// 0.2 % of the cost.
Curve curve_of(const TrueCost& cost) {
  std::vector<std::uint64_t> sizes{0};
  for (double size = 4; size < 4.3e9; size *= std::pow(2.0, 0.25))
    sizes.push_back(static_cast<std::uint64_t>(size));
  if (cost.bend > 0) sizes.push_back(static_cast<std::uint64_t>(std::ceil(cost.bend)));
  std::ranges::sort(sizes);
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  TrueCost smooth = cost;
  smooth.jump = 0;
  std::vector<CurvePiece> pieces;
  for (std::size_t i = 0; i + 1 < sizes.size(); ++i) {
    const auto from = static_cast<double>(sizes[i]), to = static_cast<double>(sizes[i + 1]);
    const double low = smooth(Bytes{sizes[i]}), high = smooth(Bytes{sizes[i + 1]});
    const double beta = (high - low) / (to - from);
    const double jump = from >= cost.bend ? cost.jump : 0;
    pieces.push_back(
        {Bytes{sizes[i]}, Seconds{std::max(0.0, low - beta * from) + jump}, SecondsPerByte{beta}});
  }
  return Curve(std::move(pieces));
}

Fit known_fit(const TrueCost& cost) {
  Fit fit;
  fit.curve = curve_of(cost);
  fit.smallest = Bytes{1};
  fit.largest = Bytes{std::uint64_t{1} << 32};
  fit.quality = {9, 1, 0, 0};
  return fit;
}

void add_link(Cluster& cluster, const DrawnCluster& drawn, const Quantity& quantity, const Fit& fit) {
  const auto host = [&](int rank) { return drawn.rank_hosts[static_cast<std::size_t>(rank)]; };
  const bool inside = host(quantity.source) == host(quantity.destination);
  LinkFit& link = cluster.links[inside ? LinkClass::kIntraHost : LinkClass::kInterHost];
  const bool both_ways = quantity.subject == Subject::kExchange;
  (both_ways ? link.duplex : quantity.in_flight == kStreaming ? link.streamed : link.alone) = fit;
}

void add_operation(Cluster& cluster, const Quantity& quantity, const Fit& fit) {
  auto known = std::ranges::find_if(cluster.operations, [&](const OperationFit& operation) {
    return operation.road == quantity.road && operation.operation == quantity.operation &&
           operation.workers == quantity.workers;
  });
  if (known == cluster.operations.end()) {
    cluster.operations.push_back({quantity.road, quantity.operation, quantity.workers, {}, {}});
    known = std::prev(cluster.operations.end());
  }
  (quantity.in_flight == kStreaming ? known->streamed : known->alone) = fit;
}

}  // namespace

std::vector<Road> roads_of(const DrawnCluster& cluster) {
  std::vector<Road> roads;
  for (const std::vector<Target>* targets : {&cluster.targets, &cluster.other_targets}) {
    for (const Target& target : *targets) {
      const Quantity& quantity = target.quantity;
      const bool at_all = static_cast<std::size_t>(quantity.workers) == cluster.rank_hosts.size();
      if (quantity.subject != Subject::kOperation || !at_all) continue;
      if (std::ranges::find(roads, quantity.road) == roads.end()) roads.push_back(quantity.road);
    }
  }
  return roads;
}

Cluster true_cluster(const DrawnCluster& drawn) {
  Cluster cluster;
  cluster.name = "true";
  cluster.transport = "tcp";
  for (const std::string& host : drawn.rank_hosts) {
    if (cluster.hosts.empty() || cluster.hosts.back().name != host) cluster.hosts.push_back({host, 0});
    ++cluster.hosts.back().slots;
  }
  for (std::size_t i = 0; i < drawn.targets.size(); ++i) {
    const Quantity& quantity = drawn.targets[i].quantity;
    const TrueCost& cost = drawn.costs[i];
    switch (quantity.subject) {
      case Subject::kMessage:
      case Subject::kExchange:
        add_link(cluster, drawn, quantity, known_fit(cost));
        break;
      case Subject::kOperation:
        add_operation(cluster, quantity, known_fit(cost));
        break;
      case Subject::kSum:
        cluster.reduce_seconds_per_byte.value = cost.per_byte;
        break;
      case Subject::kCopy:
        cluster.copy_seconds_per_byte.value = cost.per_byte;
        break;
      default:
        break;
    }
  }
  for (std::size_t i = 0; i < drawn.other_targets.size(); ++i)
    add_operation(cluster, drawn.other_targets[i].quantity, known_fit(drawn.other_costs[i]));
  return cluster;
}

NoisyClock::NoisyClock(const Noise& noise, std::uint64_t seed) : noise_(noise), seed_(seed), random_(seed) {}

std::vector<double> NoisyClock::visit(double seconds, int messages, int repetitions, Seconds at) {
  // What is long averages over what disturbs it: so much of the noise is left.
  constexpr double kShort = 1e-3;
  const double whole = seconds * messages;
  const double left = std::min(1.0, std::pow(kShort / whole, 0.3));
  const auto half_second = static_cast<std::uint64_t>(at.count() / 0.5);
  Random of_state(seed_ + 1'000'003 * (half_second + 1));
  const double off = noise_.state * of_state.normal() + noise_.visit * left * random_.normal();
  std::vector<double> times;
  for (int i = 0; i < repetitions; ++i) {
    double time = whole * std::exp(off + noise_.within * left * random_.normal());
    if (random_.uniform() < noise_.stall_chance) time -= noise_.stall_seconds * std::log(random_.uniform());
    times.push_back(time / messages);
  }
  return times;
}

}  // namespace commtune::bench
