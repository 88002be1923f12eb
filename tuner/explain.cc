#include "tuner/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "perfmodel/base/overloaded.h"
#include "perfmodel/cost/plan_cost.h"
#include "tuner/whatif.h"

namespace commtune::tuner {

namespace {

/// Lines that a person reads, the best first: further ones gain less.
constexpr std::size_t kImprovements = 3;
/// Moments closer than this part of the iteration are one.
constexpr double kSameMoment = 1e-9;

/// Walks back from the end of the iteration along what each thing waited for.
class CriticalPath {
 public:
  CriticalPath(const Timeline& timeline, const Plan& plan, bool shared_channel, Seconds iteration)
      : timeline_(timeline), plan_(plan), shared_channel_(shared_channel), same_(iteration * kSameMoment) {
    if (!timeline.pulls.empty()) add_pulls();
    for (std::size_t m = 0; timeline.pulls.empty() && m < timeline.messages.size(); ++m) {
      const MessageSpan& span = timeline.messages[m];
      const bool apart = span.distribute_start > span.reduce_end + same_;
      if (apart || !shared_channel) {
        intervals_.push_back({m, Stage::kReduce, span.reduce_start, span.reduce_end, ", reduce"});
        intervals_.push_back(
            {m, Stage::kDistribute, span.distribute_start, span.distribute_end, ", distribute"});
      } else {
        intervals_.push_back({m, Stage::kReduce, span.reduce_start, span.distribute_end, ""});
      }
    }
  }

  std::vector<CriticalStep> steps() {
    const ChannelInterval* interval = through_forward();
    while (interval != nullptr) interval = through(*interval);
    std::reverse(steps_.begin(), steps_.end());
    // A message leaves its channel to the next before it has arrived: from there on the next is what counts.
    for (std::size_t i = 0; i + 1 < steps_.size(); ++i) {
      steps_[i].until = std::min(steps_[i].until, steps_[i + 1].from);
    }
    return std::move(steps_);
  }

 private:
  /// A message, or one stage of it, on its channel; a pull is the distribute stage of none.
  struct ChannelInterval {
    std::size_t message;
    Stage stage;
    Seconds from, until;
    const char* which;
    bool pull = false;
  };

  void add_pulls() {
    for (std::size_t m = 0; m < timeline_.messages.size(); ++m) {
      const MessageSpan& span = timeline_.messages[m];
      intervals_.push_back({m, Stage::kReduce, span.reduce_start, span.reduce_end, ", push"});
    }
    for (std::size_t p = 0; p < timeline_.pulls.size(); ++p) {
      const MessageSpan& span = timeline_.pulls[p];
      intervals_.push_back({p, Stage::kDistribute, span.distribute_start, span.distribute_end, "", true});
    }
  }

  /// What a pull waited for: the push that was summed last of all that it brings back, or what was before it
  /// on its channel.
  const ChannelInterval* before_pull(const ChannelInterval& pull) const {
    const Seconds summed = timeline_.pulls[pull.message].released;
    const ChannelInterval* before = nullptr;
    for (const ChannelInterval& p : intervals_) {
      if (p.from >= pull.from) continue;
      if (p.stage == Stage::kReduce && pull.from <= summed + same_ && p.until >= summed - same_ &&
          p.until <= summed + same_)
        return &p;
      if ((shared_channel_ || p.pull) && (before == nullptr || p.from > before->from)) before = &p;
    }
    return before;
  }

  /// The last stretch of forward layers that ran without waiting; returns what it waited for, if for a
  /// message.
  const ChannelInterval* through_forward() {
    std::size_t first = timeline_.forward_end.size() - 1;
    const std::size_t last = first;
    while (first > 0 && timeline_.forward_start[first] <= timeline_.forward_end[first - 1] + same_) --first;
    const Seconds from = timeline_.forward_start[first];
    steps_.push_back({CriticalStep::Kind::kForward, fmt::format("forward pass, layers {} to {}", first, last),
                      from, timeline_.forward_end[last]});
    const Seconds computed = first > 0 ? timeline_.forward_end[first - 1] : timeline_.backward_end.front();
    if (from > computed + same_) {
      for (const ChannelInterval& p : intervals_) {
        if (p.until >= from - same_ && p.until <= from + same_) return &p;
      }
    }
    through_backward(from);
    return nullptr;
  }

  /// What this waited for: its gradient, its own reduce, or the interval before it on its channel.
  const ChannelInterval* through(const ChannelInterval& interval) {
    const Message& message = (interval.pull ? plan_.pulls : plan_.messages)[interval.message];
    steps_.push_back({CriticalStep::Kind::kMessage,
                      fmt::format("{} {} ({}{})", interval.pull ? "pull" : "message", interval.message,
                                  format_size(wire_bytes(plan_, message)), interval.which),
                      interval.from, interval.until});
    if (interval.pull) {
      const ChannelInterval* before = before_pull(interval);
      if (before == nullptr) through_backward(interval.from);
      return before;
    }
    const MessageSpan& span = timeline_.messages[interval.message];
    const ChannelInterval* own_reduce = nullptr;
    const ChannelInterval* before = nullptr;
    for (const ChannelInterval& p : intervals_) {
      if (p.from >= interval.from) continue;
      if (p.message == interval.message && !p.pull) own_reduce = &p;
      const bool same_channel = shared_channel_ || p.stage == interval.stage;
      if (same_channel && (before == nullptr || p.from > before->from)) before = &p;
    }
    if (interval.stage == Stage::kDistribute && own_reduce != nullptr &&
        interval.from <= span.reduce_end + same_) {
      return own_reduce;
    }
    if (interval.stage == Stage::kReduce && interval.from <= span.released + same_) before = nullptr;
    if (before == nullptr) through_backward(interval.from);
    return before;
  }

  void through_backward(Seconds until) {
    std::size_t layer = 0;
    while (layer + 1 < timeline_.backward_end.size() && timeline_.backward_end[layer] > until + same_)
      ++layer;
    steps_.push_back({CriticalStep::Kind::kBackward,
                      fmt::format("backward pass, layers {} to {}", timeline_.backward_end.size() - 1, layer),
                      Seconds{0}, until});
  }

  const Timeline& timeline_;
  const Plan& plan_;
  const bool shared_channel_;
  const Seconds same_;
  std::vector<ChannelInterval> intervals_;
  std::vector<CriticalStep> steps_;
};

Cluster with_equal_hosts(Cluster cluster) {
  for (Host& host : cluster.hosts) host.slowdown = {};
  return cluster;
}

std::vector<Improvement> improvements(const Profile& profile, const Cluster& cluster, const Plan& plan,
                                      Seconds now) {
  const auto work_on = [&](const Cluster& on) { return Workload(profile, slowdown_of(on, plan.workers)); };
  const Workload work = work_on(cluster);
  const auto on_cluster = [&](const Cluster& changed) {
    return simulate(work_on(changed), plan, plan_cost(plan, changed)).iteration;
  };
  const auto without = [&](Scalar Cluster::*scalar) {
    Cluster changed = cluster;
    (changed.*scalar).value = 0;
    return on_cluster(changed);
  };
  std::vector<Improvement> list = {
      {"twice the bandwidth", now - on_cluster(with_network(cluster, 1, 0.5))},
      {"half the latency", now - on_cluster(with_network(cluster, 0.5, 1))},
      {"compute that traffic does not slow", now - without(&Cluster::interference)},
      {"traffic that compute does not slow", now - without(&Cluster::contention)},
      {"hosts that are all alike", now - on_cluster(with_equal_hosts(cluster))},
      {"messages that need no fusion buffer", now - without(&Cluster::copy_seconds_per_byte)},
      {"servers at which nothing urgent waits", now - without(&Cluster::head_of_line_seconds)},
      {"workers that do not straggle", now - without(&Cluster::jitter_seconds)},
      {"a device a quarter faster",
       now - simulate(Workload(scaled(profile, 1, 0.8), slowdown_of(cluster, plan.workers)), plan,
                      plan_cost(plan, cluster))
                 .iteration},
  };
  Plan unhindered = plan;
  unhindered.barrier = Barrier::kPerLayer;
  list.push_back({"a barrier per layer instead of one for all",
                  now - simulate(work, unhindered, plan_cost(plan, cluster)).iteration});
  std::erase_if(list, [now](const Improvement& i) { return i.gain <= now * kSameMoment; });
  std::stable_sort(list.begin(), list.end(),
                   [](const Improvement& a, const Improvement& b) { return a.gain > b.gain; });
  if (list.size() > kImprovements) list.resize(kImprovements);
  return list;
}

/// Bytes that one worker and one server send in an iteration: 2 (N-1)/N D, D and N D / S of MODEL.md
/// section 4.3. With a local sum on hosts of g workers a worker sends (g-1)/g D inside its host in either
/// stage and pushes D / g.
void count_traffic(const Plan& plan, const Topology& place, Bytes gradients, Explanation& explanation) {
  const double d = static_cast<double>(gradients.count), n = plan.workers;
  if (plan.workers == 1) return;
  const auto all_reduce = [&](const AllReduce&) {
    explanation.worker_traffic = Bytes{static_cast<std::uint64_t>(2 * (n - 1) / n * d)};
  };
  const auto servers = [&](const ParameterServer& road) {
    const bool sums = road.local_sum == LocalSum::kFirst;
    const double g = sums ? place.fewest : 1, pushed = sums ? place.hosts : n;
    explanation.worker_traffic = Bytes{static_cast<std::uint64_t>((2 * (g - 1) + 1) / g * d)};
    explanation.server_traffic = Bytes{static_cast<std::uint64_t>(pushed * d / road.servers)};
  };
  match(plan.road, all_reduce, servers);
}

Explanation explain_over(const Profile& profile, const Cluster& cluster, const Plan& plan) {
  const Workload work(profile, slowdown_of(cluster, plan.workers));
  Explanation explanation;
  const RoadCost cost = plan_cost(plan, cluster);
  explanation.prediction = simulate(work, plan, cost, &explanation.timeline);
  const Seconds iteration = explanation.prediction.iteration;
  explanation.critical_path =
      CriticalPath{explanation.timeline, plan, cost.shared_channel, iteration}.steps();
  explanation.improvements = improvements(profile, cluster, plan, iteration);
  explanation.communication_ratio = explanation.prediction.communication / explanation.prediction.compute;
  count_traffic(plan, topology_of(cluster, plan.workers), bytes_on(plan.wire, profile.gradient_bytes()),
                explanation);
  return explanation;
}

}  // namespace

Explanation explain(const Profile& profile, const Cluster& cluster, const Plan& plan) {
  return explain_over(profile, over_transport(cluster, plan.transport), plan);
}

}  // namespace commtune::tuner
