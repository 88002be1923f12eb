#include "tests/bench/drawn_probe.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "api/advice/plan_advisor.h"
#include "perfmodel/base/error.h"
#include "perfmodel/cost/road_kind.h"
#include "perfmodel/cost/stage_cost.h"
#include "probes/analysis/enough_sizes.h"
#include "probes/analysis/fit_cluster.h"
#include "probes/sampling/interim_looks.h"
#include "probes/sampling/sampling_plan.h"

namespace commtune::bench {

namespace {

using probes::kStreaming;
using probes::ProbeSample;
using probes::Quantity;
using probes::Subject;
using probes::Target;

/// A probe without a network: the survey, then the sampling plan, until the budget is spent.
class DrawnProbe {
 public:
  DrawnProbe(const DrawnCluster& cluster, const SamplingCase& how)
      : cluster_(cluster),
        how_(how),
        clock_(cluster.noise, how.noise_seed),
        costs_(cluster.costs),
        budget_(how.budget_factor *
                probes::default_budget(cluster.hosts, static_cast<int>(cluster.rank_hosts.size()))) {}

  void run() {
    survey();
    measure_the_rest();
    follow_the_plan();
  }

  /// Of all that was measured.
  Cluster fitted(int bootstrap) const {
    probes::ClusterFacts facts;
    facts.name = "drawn";
    facts.transport = "tcp";
    facts.rank_hosts = cluster_.rank_hosts;
    FitOptions options;
    options.bootstrap = bootstrap;
    return fit_cluster(samples_, facts, options);
  }

  const std::vector<ProbeSample>& samples() const { return samples_; }
  bool settled() const { return settled_; }
  BudgetSplit split() const { return split_; }

 private:
  Seconds left() const { return budget_ - spent_; }

  void spend(double seconds, double& on) {
    spent_ += Seconds{seconds};
    on += seconds;
  }

  /// All pairs of hosts: the latency of a small message, and the time per byte of a stream.
  void survey() {
    constexpr int kRoundTrips = 20, kMessages = 20, kInFlight = 4;
    constexpr double kCommands = 30e-3;  // a round
    const Bytes size = 64_KiB;
    for (int a = 0; a < cluster_.hosts; ++a) {
      for (int b = 0; b < cluster_.hosts; ++b) {
        if (a == b) continue;
        add_pair(a, b, 1, Bytes{4}, cluster_.between.latency.count(), kRoundTrips);
        add_pair(a, b, kInFlight, size, (cluster_.between.beta * size).count(), 1);
      }
    }
    const double round = 2 * kRoundTrips * cluster_.between.latency.count() +
                         4 * (kMessages + kInFlight) * (cluster_.between.beta * size).count() + kCommands;
    spend(round * (cluster_.hosts + cluster_.hosts % 2 - 1), split_.survey);
  }

  void add_pair(int from, int to, int in_flight, Bytes size, double seconds, int repetitions) {
    const auto first_rank = [&](int host) {
      return host * static_cast<int>(cluster_.rank_hosts.size()) / cluster_.hosts;
    };
    ProbeSample sample;
    sample.quantity.source = first_rank(from);
    sample.quantity.destination = first_rank(to);
    sample.quantity.in_flight = in_flight;
    sample.raw_seconds = clock_.visit(seconds, in_flight > 1 ? 20 : 1, repetitions, spent_);
    std::vector<double> times = sample.raw_seconds;
    const MedianInterval interval = median_interval(times);
    sample.sample = {size, Seconds{interval.median}, Seconds{(interval.high - interval.low) / 2},
                     repetitions};
    samples_.push_back(std::move(sample));
  }

  /// Clocks, compute steps, and how long what is urgent waits, which the plan knows nothing of.
  void measure_the_rest() {
    constexpr double kSteps = 0.12, kUrgent = 0.06;
    spend(kSteps + 2 * kUrgent * (left().count() - kSteps), split_.rest);
  }

  void follow_the_plan() {
    probes::SamplingPlanOptions options;
    options.budget = budget_;
    options.overhead = cluster_.overhead;
    options.chunk = TransferTraits{}.chunk;
    options.gains = how_.gains;
    probes::SamplingPlan plan(cluster_.targets, options, samples_);
    const Seconds reserve{0.15 + 0.002 * static_cast<double>(cluster_.targets.size())};
    spend(reserve.count(), split_.rest);
    probes::InterimLooks looks(budget_);
    std::optional<api::PlanAdvisor> advisor = new_advisor();
    while (const auto visit = plan.next(left(), std::nullopt)) {
      if (advisor && looks.due(*visit, left())) {
        spend(looks.limit().count(), split_.planning);  // all that it may take
        const probes::Advice advice = advisor->advise(fitted(0), looks.limit());
        add_most_needed(advice, plan);
        plan.weigh(advice.needs);
        settled_ = looks.is_settled_by(advice);
        if (settled_) return;
        continue;
      }
      const Seconds began = spent_;
      const std::vector<double> times = perform(*visit);
      account(*visit, (spent_ - began).count());
      samples_.push_back(plan.record(*visit, times));
    }
  }

  void add_most_needed(const probes::Advice& advice, probes::SamplingPlan& plan) {
    const probes::RoadNeed* need = most_needed(advice);
    if (need == nullptr || plan.has_target(*need)) return;
    std::vector<Target> added;
    for (std::size_t i = 0; i < cluster_.other_targets.size(); ++i) {
      if (cluster_.other_targets[i].quantity.road != need->road) continue;
      added.push_back(cluster_.other_targets[i]);
      costs_.push_back(cluster_.other_costs[i]);
    }
    plan.add(added, samples_);
  }

  /// With a clock that stands still: what it says does not depend on how fast this machine is.
  std::optional<api::PlanAdvisor> new_advisor() const {
    if (how_.profiles.empty()) return std::nullopt;
    return std::optional<api::PlanAdvisor>(
        std::in_place,
        api::PlanAdvisorOptions{how_.profiles, how_.are_all, roads_of(cluster_), [] { return Seconds{0}; }});
  }

  /// Ends early when the budget is spent, but has one time at least.
  std::vector<double> perform(const probes::Visit& visit) {
    const TrueCost& cost = costs_[visit.target];
    const double truth = cost(visit.size), overhead = cluster_.overhead.count();
    const bool streamed = visit.quantity.in_flight > 1;
    if (visit.first) warm_up(visit, cost);
    const int messages = streamed ? visit.messages : 1;
    std::vector<double> times = clock_.visit(truth, messages, visit.repetitions, spent_);
    if (probes::is_back_to_back(visit.quantity)) {
      const int ways = visit.quantity.subject == Subject::kMessage ? 2 : 1;
      double sum = overhead;
      for (const double time : times) sum += ways * time;
      spent_ += Seconds{sum};
      return times;
    }
    std::vector<double> done;
    for (const double time : times) {
      const double shorter = streamed ? truth * (visit.quantity.in_flight + 2) + overhead : 0;
      const double whole = time * messages + overhead + shorter;
      if (!done.empty() && left() < Seconds{whole}) break;
      spent_ += Seconds{whole};
      done.push_back(time);
    }
    return done;
  }

  void warm_up(const probes::Visit& visit, const TrueCost& cost) {
    const Bytes size = std::min(visit.size, probes::kWarmUpBytes);
    spent_ += Seconds{cost(size) * visit.quantity.in_flight + cluster_.overhead.count()};
  }

  void account(const probes::Visit& visit, double seconds) {
    switch (visit.quantity.subject) {
      case Subject::kMessage:
      case Subject::kExchange:
        split_.links += seconds;
        return;
      case Subject::kOperation:
        (visit.of_first_sizes ? split_.first_sizes : split_.refinement) += seconds;
        return;
      default:
        split_.rest += seconds;
    }
  }

  const DrawnCluster& cluster_;
  const SamplingCase& how_;
  NoisyClock clock_;
  std::vector<TrueCost> costs_;  ///< by target of the plan
  Seconds budget_, spent_{};
  BudgetSplit split_;
  bool settled_ = false;
  std::vector<ProbeSample> samples_;
};

/// Of both stages, or of the one that the operation is.
const StageCost& stage_of(const RoadCost& cost, Operation operation) {
  switch (operation) {
    case Operation::kReduceScatter:
    case Operation::kPush:
      return cost.reduce;
    case Operation::kAllGather:
    case Operation::kPull:
      return cost.distribute;
    case Operation::kAllReduce:
    case Operation::kPushPull:
      break;
  }
  return cost.both;
}

/// What predictions would take a target to cost; nothing where no fit and no formula tells.
std::optional<Curve> said_of(const Target& target, const Cluster& fitted) {
  const Quantity& quantity = target.quantity;
  try {
    const RoadCost cost = road_cost(quantity.road, fitted, quantity.workers);
    const StageCost& stage = stage_of(cost, quantity.operation);
    return quantity.in_flight == kStreaming ? stage.occupancy : stage.alone;
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// Sizes between and beyond those of the plan's grid, which are powers of two: 192 B, 768 B, ..., up to four
/// times the largest that is worth measuring, since plans send such messages too.
std::vector<Bytes> held_out_sizes(const Target& target) {
  constexpr Bytes kMost{12 << 20};
  std::vector<Bytes> sizes;
  for (Bytes size{192}; size <= kMost && size.count <= 4 * target.largest.count; size.count *= 4) {
    if (size >= target.smallest) sizes.push_back(size);
  }
  return sizes;
}

bool is_enough(const Target& target, const std::vector<ProbeSample>& samples) {
  std::vector<Bytes> sizes;
  for (const ProbeSample& sample : samples) {
    Quantity quantity = sample.quantity;
    if (quantity.in_flight > 1) quantity.in_flight = kStreaming;
    if (quantity == target.quantity) sizes.push_back(sample.sample.size);
  }
  std::ranges::sort(sizes);
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return !sizes.empty() && probes::are_enough(sizes.size(), sizes.front(), sizes.back());
}

/// Of a whole road at all ranks, as a stream.
bool may_be_chosen(const Target& target, std::size_t ranks) {
  const Quantity& quantity = target.quantity;
  return quantity.subject == Subject::kOperation && quantity.in_flight == kStreaming &&
         static_cast<std::size_t>(quantity.workers) == ranks &&
         quantity.operation == operations_of(quantity.road).both;
}

double regret_of(const DrawnCluster& cluster, const Cluster& fitted) {
  constexpr Bytes kAsked{256 << 10};
  double least_said = 0, its_truth = 0, least = 0;
  for (std::size_t i = 0; i < cluster.targets.size(); ++i) {
    if (!may_be_chosen(cluster.targets[i], cluster.rank_hosts.size())) continue;
    const std::optional<Curve> said = said_of(cluster.targets[i], fitted);
    if (!said) continue;
    const double truth = cluster.costs[i](kAsked), expected = (*said)(kAsked).count();
    if (least == 0 || truth < least) least = truth;
    if (least_said == 0 || expected < least_said) {
      least_said = expected;
      its_truth = truth;
    }
  }
  return least > 0 ? its_truth / least - 1 : 0;
}

}  // namespace

double Findings::mean_error() const {
  double sum = 0;
  for (const HeldOut& one : held_out) sum += std::log1p(one.error);
  return held_out.empty() ? 0 : sum / static_cast<double>(held_out.size());
}

Findings probe_drawn(const DrawnCluster& cluster, const SamplingCase& how) {
  DrawnProbe probe(cluster, how);
  probe.run();
  Findings findings;
  findings.fitted = probe.fitted(how.bootstrap);
  findings.settled = probe.settled();
  const Cluster& fitted = findings.fitted;
  findings.spent = probe.split();
  findings.regret = regret_of(cluster, fitted);
  for (std::size_t i = 0; i < cluster.targets.size(); ++i) {
    const Target& target = cluster.targets[i];
    if (target.quantity.subject != Subject::kOperation) continue;
    ++findings.curves;
    findings.with_enough += is_enough(target, probe.samples()) ? 1 : 0;
    const std::optional<Curve> said = said_of(target, fitted);
    if (!said) {
      ++findings.without_price;
      continue;
    }
    for (const Bytes size : held_out_sizes(target)) {
      const double ratio = (*said)(size).count() / cluster.costs[i](size);
      findings.held_out.push_back({std::abs(ratio - 1), target.quantity.in_flight == kStreaming});
    }
  }
  return findings;
}

}  // namespace commtune::bench
