#include "perfmodel/cost/road_formula.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "perfmodel/base/error.h"
#include "perfmodel/base/overloaded.h"
#include "perfmodel/cost/card_load.h"
#include "perfmodel/fit/curve_ops.h"

namespace commtune {

namespace {

/// One class of links as the formulas use it.
struct Link {
  Curve step;      ///< one message while the card also receives one: latency and all
  Curve streamed;  ///< the same with many in flight: occupancy only
  Bytes smallest, largest;

  double overhead() const { return streamed.least_alpha().count(); }
};

using Links = decltype(Cluster::links);

Curve constant(Seconds time) { return line(time.count(), 0); }

/// c(m) of the first chunk alone, where m is cut into `parts` segments and each of these into chunks.
Curve of_first_chunk(const Curve& curve, int parts, const TransferTraits& traits) {
  const auto whole = [&](Bytes chunk) {
    return constant(curve(Bytes{chunk.count * static_cast<std::uint64_t>(parts)}));
  };
  const Curve cut = lower(of_share(curve, 1.0 / traits.cuts), whole(traits.chunk));
  return lower(curve, upper(cut, whole(traits.short_chunk())));
}

class Formulas {
 public:
  /// links, gamma  in the place of the cluster's own; the links and the place must outlive this
  Formulas(const Cluster& cluster, const Topology& place, const Links& links, SecondsPerByte gamma)
      : cluster_(cluster), links_(links), place_(place), gamma_(gamma.value) {}

  Formula of(const Road& road) const {
    return match(
        road, [this](const AllReduce& a) { return all_reduce(a); },
        [this](const ParameterServer& p) { return parameter_server(p); });
  }

 private:
  Formula all_reduce(const AllReduce& road) const {
    switch (road.algorithm) {
      case Collective::kRing:
      case Collective::kLibrary:  // whose algorithm is its own; carried by the ring's shape
        return ring(slowest_link(), average_step(), place_.workers);
      case Collective::kHalvingDoubling:
        return halving_doubling();
      case Collective::kRecursiveDoubling:
        return recursive_doubling();
      case Collective::kOneShot:
        return one_shot();
      case Collective::kDoubleBinaryTree:
        return double_binary_tree();
      case Collective::kHierarchical:
        return hierarchical();
    }
    std::abort();
  }

  Formula parameter_server(const ParameterServer& road) const {
    Formula formula = road.placement == Placement::kDedicated ? dedicated(road) : colocated(road);
    if (road.local_sum == LocalSum::kNone || place_.per_host == 1) return formula;
    const Formula inside = inside_hosts();
    formula.reduce = sum_of(inside.reduce, formula.reduce);
    formula.distribute = sum_of(inside.distribute, formula.distribute);
    formula.both = sum_of(inside.both, formula.both);
    return formula;
  }

  Link link(LinkClass which) const {
    const auto found = links_.find(which);
    if (found == links_.end() || found->second.alone.curve.empty()) {
      throw Error(ErrorCode::kNotFound,
                  "cluster " + cluster_.name + " has no fit of its " + to_string(which) +
                      " links: probe it, with a larger budget if it was, before predicting " + "this road");
    }
    const LinkFit& fit = found->second;
    const Curve& streamed = fit.streamed.curve.empty() ? fit.alone.curve : fit.streamed.curve;
    return {upper(fit.alone.curve, fit.duplex.curve), upper(streamed, fit.duplex.curve), fit.alone.smallest,
            fit.alone.largest};
  }
  /// The link between hosts, with its factors; the one inside a host for a job that stays there.
  Link between_hosts(bool inside, double latency, double time_per_byte) const {
    if (inside) return link(LinkClass::kIntraHost);
    Link by = link(LinkClass::kInterHost);
    if (latency != 1 || time_per_byte != 1) {
      by.step = recalibrated(by.step, latency, time_per_byte);
      by.streamed = recalibrated(by.streamed, latency, time_per_byte);
    }
    return by;
  }
  /// As a collective sees it: every round waits for the slowest of its workers' hosts.
  Link between_hosts() const {
    return between_hosts(place_.hosts == 1, place_.slowest.latency, place_.slowest.time_per_byte);
  }

  /// The slower of the links that a ring over all workers crosses.
  Link slowest_link() const {
    Link slow = between_hosts();
    if (place_.hosts > 1 && place_.per_host > 1 && links_.contains(LinkClass::kIntraHost)) {
      const Link inside = link(LinkClass::kIntraHost);
      slow.step = upper(slow.step, inside.step);
      slow.streamed = upper(slow.streamed, inside.streamed);
    }
    return slow;
  }

  /// What a message takes on average over the links that a ring over all workers crosses: as often between
  /// hosts as there are hosts, else inside them.
  Curve average_step() const {
    if (place_.hosts == 1 || place_.per_host == 1 || !links_.contains(LinkClass::kIntraHost))
      return between_hosts().step;
    const double between = static_cast<double>(place_.hosts) / place_.workers;
    return sum(commtune::times(between_hosts().step, between),
               commtune::times(link(LinkClass::kIntraHost).step, 1 - between));
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

  /// `steps` transfers of a segment, each after the first chunk of the one before has come: a step takes as
  /// long as its segment's bytes or as one chunk on its way, and only the last one both.
  /// by      the slowest link, whose bytes all wait for
  /// on_way  what a message takes over one of the links on average
  Curve chain(const Link& by, const Curve& on_way, int steps, int segments) const {
    const double share = 1.0 / segments;
    const Curve chunk = of_share(of_first_chunk(on_way, 1, cluster_.traits), share);
    const Curve each = upper(of_share(by.streamed, share), chunk);
    return sum(commtune::times(each, steps - 1), of_share(by.step, share));
  }

  /// (N-1) alpha + (N-1)/N m (beta + gamma), then the same without gamma; of long segments, whose chunks hide
  /// latencies, alpha + (N-1)/N m (beta + gamma).
  Formula ring(const Link& by, const Curve& on_way, int n) const {
    const double share = 1.0 / n;
    const int steps = n - 1;
    const Curve alone = chain(by, on_way, steps, n),
                flow = commtune::times(of_share(by.streamed, share), steps),
                adding = line(0, gamma_ * steps * share);
    Formula formula = two_stages({sum(alone, adding), sum(flow, adding)}, {alone, flow}, by, share);
    formula.both.alone = sum(chain(by, on_way, 2 * steps, n), adding);
    return formula;
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

  /// Whole messages to all others at once, g ranks through each host's card: one latency, and the card passes
  /// g (N-g) m each way. alpha + (g (N-g) - 1) o + g (N-g) m beta.
  Formula one_shot() const {
    const bool inside = place_.hosts == 1;
    const double sent =
        inside ? place_.workers - 1 : 1.0 * place_.per_host * (place_.workers - place_.per_host);
    const Link by = between_hosts();
    return two_stages(direct_stage(by, sent, sent, sent, sent, place_.workers - 1), {}, by, 1);
  }

  /// Pipelined: ceil(log2 N) latencies and each byte once. log2(N) alpha + m (beta + gamma).
  Formula double_binary_tree() const {
    const Link by = slowest_link();
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
    const auto over = [this](const Link& by, int members) { return ring(by, by.step, members); };
    if (n == 1 || g == 1) return over(between_hosts(), place_.workers);
    const Formula inside = over(link(LinkClass::kIntraHost), g);
    const Formula outside = over(between_hosts(), n);
    Formula formula = outside;
    formula.reduce = sum_of(inside.reduce, outside.reduce);
    formula.distribute = sum_of(inside.distribute, outside.distribute);
    formula.both = sum_of(formula.reduce, formula.distribute);
    return formula;
  }

  /// One direction of one stage through servers: the busiest card passes `share` of a message (of
  /// `stream_share` on average when messages follow each other) as `parts` transfers.
  StageCost direct_stage(const Link& by, double share, double stream_share, double parts, double stream_parts,
                         double summed) const {
    const Curve alone = sum(of_share(by.step, share), line((parts - 1) * by.overhead(), 0));
    const Curve flow = sum(of_share(by.streamed, stream_share), line((stream_parts - 1) * by.overhead(), 0));
    const double alpha = alone.least_alpha().count();
    return {upper(alone, line(alpha, gamma_ * summed)),
            upper(flow, line(flow.least_alpha().count(), gamma_ * summed))};
  }

  /// A sum inside the host with the most workers, of which as many own a part as the host with the fewest
  /// has; and the way back.
  Formula inside_hosts() const {
    const Link by = link(LinkClass::kIntraHost);
    const double share = 1.0 / place_.fewest;
    const int steps = place_.per_host - 1;
    return two_stages(rounds(by, steps, share, steps * share), rounds(by, steps, share, 0), by, share);
  }

  /// A server answers a chunk while the next is pushed: both stages take no longer than the push of the first
  /// chunks, what passes the busiest direction in all, and one more latency.
  void overlap_stages(Formula& formula, const CardLoad& load, const Link& by, int servers) const {
    const Curve together = of_share(by.streamed, load.together);
    const Curve back = constant(formula.distribute.alone.least_alpha());
    const Curve first = of_first_chunk(formula.reduce.alone, servers, cluster_.traits);
    formula.both.alone = lower(formula.both.alone, sum(sum(first, together), back));
  }

  /// push: alpha + max(m beta_w, N m / S beta_s, N m / S gamma) + N o; pull the same without gamma. A hashed
  /// message goes whole to one server, which only a stream of messages spreads over all of them.
  Formula dedicated(const ParameterServer& road) const {
    const CardLoad load = load_of(road, place_);
    const Link by = between_hosts(inside_one_host(place_, road), load.latency, 1);
    const auto [n, pushers] = push_of(road, place_);
    const double s = road.servers;
    const bool hashed = road.assignment == Assignment::kHashed;
    const double share = hashed ? load.one : load.stage;
    const double parts = hashed ? pushers : std::max(pushers, s);
    const double stream_parts = hashed ? std::max(1.0, pushers / s) : parts;
    const double summed = hashed ? n : n / s;
    Formula formula = two_stages(direct_stage(by, share, load.stage, parts, stream_parts, summed),
                                 direct_stage(by, share, load.stage, parts, stream_parts, 0), by, 1 / s);
    formula.server_binds =
        load.servers_bind || gamma_ * n / s > least_time_per_byte(by.step).value * load.stage;
    return formula;
  }

  /// Servers share the cards of the first workers, and both stages share each direction.
  Formula colocated(const ParameterServer& road) const {
    const CardLoad load = load_of(road, place_);
    const Link by = between_hosts(inside_one_host(place_, road), load.latency, 1);
    const auto [n, pushers] = push_of(road, place_);
    const double s = road.servers;
    const bool hashed = road.assignment == Assignment::kHashed;
    const double one = hashed ? load.one : load.stage;
    const double parts = std::max(1.0, hashed ? pushers - 1 : std::max(pushers, s) - 1);
    const double stream_parts = hashed ? std::max(1.0, pushers / s) : parts;
    const double summed = hashed ? n : n / s;
    Formula formula = two_stages(direct_stage(by, one, load.stage, parts, stream_parts, summed),
                                 direct_stage(by, one, load.stage, parts, stream_parts, 0), by, 1 / s);
    const double all_parts = std::max(1.0, hashed ? 2 * stream_parts : pushers + s - 2);
    formula.both.occupancy =
        direct_stage(by, load.together, load.together, all_parts, all_parts, summed).occupancy;
    if (!hashed) overlap_stages(formula, load, by, road.servers);
    formula.server_binds =
        load.servers_bind || gamma_ * n / s > least_time_per_byte(by.step).value * load.together;
    return formula;
  }

  const Cluster& cluster_;
  const Links& links_;
  const Topology& place_;
  const double gamma_;
};

}  // namespace

StageCost sum_of(const StageCost& a, const StageCost& b) {
  return {sum(a.alone, b.alone), sum(a.occupancy, b.occupancy)};
}

Formula formula_of(const Road& road, const Cluster& cluster, int workers) {
  return formula_of(road, cluster, topology_of(cluster, workers));
}

Formula formula_of(const Road& road, const Cluster& cluster, const Topology& place) {
  return Formulas{cluster, place, cluster.links, SecondsPerByte{cluster.reduce_seconds_per_byte.value}}.of(
      road);
}

Formula wire_of(const Road& road, const Cluster& cluster, int workers) {
  return wire_of(road, cluster, topology_of(cluster, workers));
}

Formula wire_of(const Road& road, const Cluster& cluster, const Topology& place) {
  Links wires;
  for (const auto& [kind, measured] : cluster.links) {
    const Fit& fit = measured.streamed.curve.empty() ? measured.alone : measured.streamed;
    wires[kind].alone.curve = Curve{Seconds{0}, least_time_per_byte(fit.curve)};
  }
  return Formulas{cluster, place, wires, SecondsPerByte{0}}.of(road);
}

double summed_per_byte(const Road& road, const Cluster& cluster, const Topology& place) {
  // Over links that take no time, with a second for each byte that is added.
  Links costless;
  for (const LinkClass kind : {LinkClass::kIntraHost, LinkClass::kInterHost})
    costless[kind].alone.curve = line(0, 0);
  const Formula formula = Formulas{cluster, place, costless, SecondsPerByte{1}}.of(road);
  constexpr Bytes kLarge = 1024_MiB;
  return formula.both.alone(kLarge).count() / static_cast<double>(kLarge.count);
}

}  // namespace commtune
