#include "probes/sampling/targets.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>

#include "perfmodel/base/overloaded.h"
#include "perfmodel/cost/road_kind.h"
#include "probes/analysis/links.h"
#include "probes/load/road_operation.h"

namespace commtune::probes {

namespace {

// How much each kind of target matters beside the others, in parts of the weight of one. What plans are
// mostly made of weighs most: rings and servers on all ranks. Roads that seldom lead, and sub-groups, which
// only tell how costs grow with the ranks, weigh least. All of them get the sizes that a fit needs
// (enough_sizes.h) whatever they weigh; weights decide what is refined.
constexpr double kLinkWeight = 5;        // cheap, and what all formulas rest on
constexpr double kLinkStreamWeight = 1;  // known well from all pairs; small ones scatter however often
constexpr double kRingWeight = 2;
constexpr double kOtherAlgorithmWeight = 0.4;
constexpr double kOneShotWeight = 0.2;
constexpr double kAllServersWeight = 1.5;
constexpr double kFewServersWeight = 0.6;
constexpr double kStageShare = 0.5;     // of the weight of the whole operation
constexpr double kStreamedShare = 0.7;  // of the weight of one message alone
constexpr double kGroupShare = 0.2;

// What one of many small messages under way takes: a first idea, which the first visit replaces. One of a
// link costs little more than a system call has to do with it.
constexpr Seconds kStreamedOperation{100e-6};
constexpr Seconds kStreamedMessage{2e-6};

// Beyond these sizes messages are limited by bandwidth alone: those streamed cost what the range below says.
constexpr Bytes kLargestStreamed{512 << 10};
constexpr Bytes kLargestStreamedBetweenTwo{1 << 20};

// What every rank sends to every other is meant for the smallest messages: larger ones only show the links.
constexpr Bytes kLargestOneShot{256 << 10};

// Smaller messages have no element for each worker, and so fewer parts on their way than all others: what
// they cost says nothing of those.
constexpr std::uint64_t kElementBytes = 4;

bool both_stages(Operation operation) {
  return operation == Operation::kAllReduce || operation == Operation::kPushPull;
}

bool is_one_shot(const Road& road) { return road == Road{AllReduce{Collective::kOneShot}}; }

double all_reduce_bytes(Collective algorithm, Operation operation, int workers) {
  const double n = workers;
  const double stages = both_stages(operation) ? 2 : 1;
  switch (algorithm) {
    case Collective::kRing:
    case Collective::kHierarchical:
    case Collective::kHalvingDoubling:
      return stages * (n - 1) / n;
    case Collective::kDoubleBinaryTree:
      return stages;
    case Collective::kRecursiveDoubling:
      return std::bit_width(static_cast<unsigned>(workers - 1));
    case Collective::kOneShot:
      return n - 1;
    case Collective::kLibrary:
      return 2;
  }
  return 2;
}

double server_bytes(const ParameterServer& servers, Operation operation, int workers) {
  const double n = workers;
  const double s = servers.servers;
  const bool dedicated = servers.placement == Placement::kDedicated;
  const double push = dedicated || servers.servers < workers ? 1 : (s - 1) / s;
  const double pull = (dedicated ? n : n - 1) / (servers.assignment == Assignment::kHashed ? 1 : s);
  switch (operation) {
    case Operation::kPush:
      return push;
    case Operation::kPull:
      return pull;
    default:
      return dedicated ? std::max(push, pull) : std::max(1.0, (s - 1) / s + pull);
  }
}

/// Messages that follow each other before an empty one has ended everywhere.
double all_reduce_latencies(Collective algorithm, double stages, int workers) {
  const double rounds = std::bit_width(static_cast<unsigned>(workers - 1));
  switch (algorithm) {
    case Collective::kRing:
      return stages * (workers - 1);
    case Collective::kHalvingDoubling:
    case Collective::kDoubleBinaryTree:
      return stages * rounds;
    case Collective::kRecursiveDoubling:
      return rounds;
    case Collective::kOneShot:
      return 1;
    case Collective::kHierarchical:
    case Collective::kLibrary:
      break;
  }
  return 2 * stages;
}

double latencies(const Road& road, Operation operation, int workers) {
  const double stages = both_stages(operation) ? 2 : 1;
  return match(
      road, [&](const AllReduce& all) { return all_reduce_latencies(all.algorithm, stages, workers); },
      [&](const ParameterServer&) { return stages; });
}

double weight_of(Collective algorithm) {
  if (algorithm == Collective::kRing) return kRingWeight;
  return algorithm == Collective::kOneShot ? kOneShotWeight : kOtherAlgorithmWeight;
}

bool hosts_have_several_ranks(const std::vector<std::string>& rank_hosts) {
  return std::set(rank_hosts.begin(), rank_hosts.end()).size() < rank_hosts.size();
}

/// Whether servers get one sum of a host, which spares its card, instead of each rank's gradients.
bool sums_inside_hosts(const std::vector<std::string>& rank_hosts) {
  const bool one_host =
      std::ranges::adjacent_find(rank_hosts, std::ranges::not_equal_to{}) == rank_hosts.end();
  return !one_host && hosts_have_several_ranks(rank_hosts);
}

double weight_of(const Road& road, const std::vector<std::string>& rank_hosts) {
  return match(
      road, [](const AllReduce& all) { return weight_of(all.algorithm); },
      [&](const ParameterServer& servers) {
        const bool leads = servers.servers == static_cast<int>(rank_hosts.size()) &&
                           sums_inside_hosts(rank_hosts) == (servers.local_sum == LocalSum::kFirst);
        return leads ? kAllServersWeight : kFewServersWeight;
      });
}

/// A stream of messages to servers in turn sends what it would if each server had a part of every one.
Road spread_evenly(Road road) {
  if (auto* servers = std::get_if<ParameterServer>(&road)) servers->assignment = Assignment::kEven;
  return road;
}

class Chooser {
 public:
  Chooser(const ProbeOptions& options, const ClusterShape& shape)
      : options_(options),
        guess_(shape.between ? shape.between_guess : shape.within_guess),
        surveyed_(shape.surveyed) {}

  void add_link(const Pair& pair, const LinkGuess& guess) {
    for (const int in_flight : {1, kStreaming}) {
      add_pair(Subject::kMessage, pair, in_flight, guess);
    }
    add_pair(Subject::kExchange, pair, kStreaming, guess);
  }

  /// A road's operations at one number of workers; `share` of the usual weight.
  void add_road(const Road& road, int workers, double weight, bool stages) {
    const Operations names = operations_of(road);
    add_operation(road, names.both, workers, weight);
    if (!stages) return;
    add_operation(road, names.reduce, workers, weight * kStageShare);
    add_operation(road, names.distribute, workers, weight * kStageShare);
  }

  std::vector<Target> take() { return std::move(targets_); }

 private:
  void add_pair(Subject subject, const Pair& pair, int in_flight, const LinkGuess& guess) {
    Target target;
    target.quantity.subject = subject;
    target.quantity.source = pair.first;
    target.quantity.destination = pair.second;
    target.quantity.in_flight = in_flight;
    target.weight = in_flight == 1 ? kLinkWeight : kLinkStreamWeight;
    target.largest = in_flight == 1 ? options_.last : std::min(options_.last, kLargestStreamedBetweenTwo);
    target.latency = guess.latency;
    target.startup = in_flight == 1 ? guess.latency : std::min(kStreamedMessage, guess.latency);
    target.beta = guess.beta;
    targets_.push_back(target);
  }

  void add_operation(const Road& road, Operation operation, int workers, double weight) {
    const Bytes last = is_one_shot(road) ? std::min(options_.last, kLargestOneShot) : options_.last;
    const HostSlowdown slowest = topology_of(surveyed_, workers).slowest;  // all wait for it
    for (const int in_flight : {1, kStreaming}) {
      Target target;
      target.quantity.subject = Subject::kOperation;
      target.quantity.road = road;
      target.quantity.operation = operation;
      target.quantity.workers = workers;
      target.quantity.in_flight = in_flight;
      target.weight = weight * (in_flight == 1 ? 1 : kStreamedShare);
      target.largest = in_flight == 1 ? last : std::min(last, kLargestStreamed);
      target.smallest = Bytes{kElementBytes * static_cast<std::uint64_t>(workers)};
      target.sent = bytes_sent(in_flight == 1 ? road : spread_evenly(road), operation, workers);
      target.latency = guess_.latency * latencies(road, operation, workers) * slowest.latency;
      target.startup = in_flight == 1 ? target.latency : std::min(kStreamedOperation, target.latency);
      target.beta.value = guess_.beta.value * target.sent * slowest.time_per_byte;
      targets_.push_back(target);
    }
  }

  const ProbeOptions& options_;
  LinkGuess guess_;
  const Cluster& surveyed_;
  std::vector<Target> targets_;
};

/// As many as ranks, one, and those that spare slow hosts or two; also as many as ranks of which each gets
/// whole messages.
std::vector<ParameterServer> usual_servers(int ranks, WorkerRow spared, LocalSum sum) {
  std::vector<ParameterServer> servers;
  for (const int count : {ranks, 1, spared.count > 1 ? spared.count : 2}) {
    const ParameterServer even{count, Placement::kColocated, Assignment::kEven, sum,
                               first_server(spared, count)};
    if (count <= ranks && std::ranges::find(servers, even) == servers.end()) servers.push_back(even);
  }
  if (ranks > 1) servers.push_back({ranks, Placement::kColocated, Assignment::kHashed, sum});
  return servers;
}

}  // namespace

double bytes_sent(const Road& road, Operation operation, int workers) {
  return match(
      road, [&](const AllReduce& all) { return all_reduce_bytes(all.algorithm, operation, workers); },
      [&](const ParameterServer& servers) { return server_bytes(servers, operation, workers); });
}

Offer offer(const ProbeOptions& options, const std::vector<std::string>& rank_hosts, WorkerRow spared) {
  const auto ranks = static_cast<int>(rank_hosts.size());
  const bool named = !options.algorithms.empty();
  Offer result;
  result.algorithms = options.algorithms;
  if (!named) result.algorithms.assign(all_algorithms().begin(), all_algorithms().end());
  if (!named && !hosts_have_several_ranks(rank_hosts))
    std::erase(result.algorithms, Collective::kHierarchical);
  if (!named && ranks == 2) std::erase(result.algorithms, Collective::kOneShot);  // as recursive doubling
  std::copy_if(result.algorithms.begin(), result.algorithms.end(), std::back_inserter(result.staged),
               [&](Collective algorithm) {
                 return has_stages(algorithm) && (named || algorithm == Collective::kRing);
               });
  result.servers = options.servers;
  if (!result.servers.empty()) return result;
  const bool sums = sums_inside_hosts(rank_hosts);
  result.servers = usual_servers(ranks, spared, sums ? LocalSum::kFirst : LocalSum::kNone);
  // What tells how costs grow with the workers is of servers without (choose_targets).
  if (sums) result.servers.push_back(usual_servers(ranks, spared, LocalSum::kNone).front());
  return result;
}

std::vector<int> sub_groups(const ProbeOptions& options, int ranks) {
  std::vector<int> groups = options.groups;
  if (groups.empty() && ranks >= 4) groups = {ranks / 2, 2};
  std::erase_if(groups, [&](int size) { return size < 2 || size >= ranks; });
  std::sort(groups.begin(), groups.end());
  groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
  return groups;
}

std::vector<Target> choose_targets(const ProbeOptions& options, const ClusterShape& shape,
                                   const Offer& offered) {
  const auto ranks = static_cast<int>(shape.rank_hosts.size());
  Chooser chooser(options, shape);
  if (shape.between) chooser.add_link(*shape.between, shape.between_guess);
  if (shape.within) chooser.add_link(*shape.within, shape.within_guess);
  for (const Collective algorithm : offered.algorithms) {
    const bool staged =
        std::find(offered.staged.begin(), offered.staged.end(), algorithm) != offered.staged.end();
    chooser.add_road(AllReduce{algorithm}, ranks, weight_of(algorithm), staged);
  }
  for (const ParameterServer& servers : offered.servers) {
    const int workers = servers.placement == Placement::kDedicated ? ranks - servers.servers : ranks;
    if (workers < 1) continue;
    chooser.add_road(servers, workers, weight_of(Road{servers}, shape.rank_hosts), false);
  }
  const bool ring = std::find(offered.algorithms.begin(), offered.algorithms.end(), Collective::kRing) !=
                    offered.algorithms.end();
  for (const int group : sub_groups(options, ranks)) {
    if (ring) chooser.add_road(AllReduce{Collective::kRing}, group, kRingWeight * kGroupShare, false);
    const ParameterServer all{group, Placement::kColocated, Assignment::kEven};
    if (!offered.servers.empty()) chooser.add_road(all, group, kAllServersWeight * kGroupShare, false);
  }
  return chooser.take();
}

std::vector<Target> road_targets(const ProbeOptions& options, const ClusterShape& shape, const Road& road,
                                 int workers) {
  Chooser chooser(options, shape);
  chooser.add_road(road, workers, weight_of(road, shape.rank_hosts), false);
  return chooser.take();
}

}  // namespace commtune::probes
