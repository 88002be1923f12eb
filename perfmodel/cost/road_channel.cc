#include "perfmodel/cost/road_channel.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "perfmodel/base/overloaded.h"
#include "perfmodel/cost/card_load.h"
#include "perfmodel/fit/curve_ops.h"

namespace commtune {

namespace {

/// Of a rank in two trees: the parents in both, and two children in that one in which it is no leaf.
constexpr int kTreeNeighbours = 4;

/// From so many times the time per byte of others on, a host's card, and not connections between two hosts,
/// is what messages to servers in turn wait for. In between nobody has looked.
constexpr double kSlowCard = 1.5;

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

/// Of a ring over all workers: of hosts whose cards are not alike, or of which some have several workers.
Skew skew_of_ring(const Cluster& cluster, const Topology& place) {
  const auto link = [&](LinkClass which) {
    const Curve alone = alone_over(which, cluster);
    return RingLink{alone.least_alpha(), least_time_per_byte(alone)};
  };
  return {ring_skew(place, link(LinkClass::kIntraHost), link(LinkClass::kInterHost)),
          place.slowest.time_per_byte * Seconds{cluster.connection_head_of_line_seconds.value}};
}

}  // namespace

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

}  // namespace commtune
