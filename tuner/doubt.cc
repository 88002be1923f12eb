#include "tuner/doubt.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "perfmodel/error.h"
#include "perfmodel/fit.h"
#include "perfmodel/prediction_limits.h"
#include "perfmodel/random.h"
#include "tuner/method.h"

namespace commtune::tuner {

namespace {

/// A plan that is the best one in this share of the draws wins clearly.
constexpr double kSure = 0.9;
/// Differences of regret that are rounding.
constexpr double kSame = 1e-9;
/// Messages are work for the hosts: more than so many times as many as an equally good plan has are not worth
/// a simpler method.
constexpr std::size_t kCrowd = 8;
/// Half width of a 95 % interval of a normal distribution, in standard deviations.
constexpr double kHalfWidth = 1.96;

/// After so many draws a plan is out of the race that, going by its mean and its scatter, is slower than the
/// one of least regret by more than anybody would notice in all draws but one of two hundred (so many
/// standard deviations, by Student's t): more draws would tell its own times more precisely, and nothing of
/// the choice (Maron, Moore: Hoeffding races, 1994).
constexpr std::size_t kHeat = 16;
constexpr double kDeviations = 3;

double percentile(std::vector<double>& values, double q) {
  const auto at = values.begin() + std::lround(q * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

/// The same road, or one that differs in the number of servers only and so is calibrated by it.
bool related(const Road& a, const Road& b) {
  const auto* p = std::get_if<ParameterServer>(&a);
  const auto* q = std::get_if<ParameterServer>(&b);
  if (p == nullptr || q == nullptr) return a == b;
  return p->placement == q->placement && p->local_sum == q->local_sum;
}

std::vector<Road> roads_of(const std::vector<Entry>& ranking) {
  std::vector<Road> roads;
  for (const Entry& entry : ranking) {
    if (std::find(roads.begin(), roads.end(), entry.plan.road) == roads.end())
      roads.push_back(entry.plan.road);
  }
  return roads;
}

/// The job where traffic is slowed by another contention than was fitted.
struct Slowed {
  Slowed(const Planning& job, const Cluster& cluster)
      : work(job.profile, pace_of(cluster, job.workers)), simulator(work) {}
  Workload work;
  Simulator simulator;
};

/// times[entry][draw]; fewer draws of an entry that is out of the race
using Times = std::vector<std::vector<double>>;

/// By draw.
std::vector<double> best_of(const Times& times) {
  std::vector<double> best;
  for (const std::vector<double>& of_entry : times) {
    best.resize(std::max(best.size(), of_entry.size()), std::numeric_limits<double>::infinity());
    for (std::size_t d = 0; d < of_entry.size(); ++d) best[d] = std::min(best[d], of_entry[d]);
  }
  return best;
}

struct Regret {
  double mean = 0, deviation = 0;
};

/// How much more an entry regrets than another one.
Regret regret_beyond(const std::vector<double>& entry, const std::vector<double>& other,
                     const std::vector<double>& best) {
  const auto n = static_cast<double>(best.size());
  double sum = 0, squares = 0;
  for (std::size_t d = 0; d < best.size(); ++d) {
    const double more = best[d] > 0 ? (entry[d] - other[d]) / best[d] : 0;
    sum += more;
    squares += more * more;
  }
  const double variance = n > 1 ? std::max(0.0, squares - sum * sum / n) / (n - 1) : 0;
  return {sum / n, std::sqrt(variance)};
}

/// The entry of least regret.
std::size_t leader_of(const Times& times, const std::vector<double>& best) {
  std::size_t leader = 0;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < times.size(); ++i) {
    const double regret = regret_beyond(times[i], best, best).mean;
    if (regret < least) leader = i;
    least = std::min(least, regret);
  }
  return leader;
}

std::vector<bool> in_the_race(const Times& times) {
  const std::vector<double> best = best_of(times);
  const std::vector<double>& leader = times[leader_of(times, best)];
  std::vector<bool> in;
  in.reserve(times.size());
  for (const std::vector<double>& of_entry : times) {
    const Regret beyond = regret_beyond(of_entry, leader, best);
    in.push_back(beyond.mean - kDeviations * beyond.deviation <= kIndifferent);
  }
  return in;
}

/// By entry the first one that is the same plan.
std::vector<std::size_t> first_alike(const std::vector<Entry>& ranking) {
  std::vector<std::string> digests;
  std::vector<std::size_t> first;
  digests.reserve(ranking.size());
  first.reserve(ranking.size());
  for (const Entry& entry : ranking) {
    digests.push_back(digest(entry.plan));
    first.push_back(static_cast<std::size_t>(std::find(digests.begin(), digests.end(), digests.back()) -
                                             digests.begin()));
  }
  return first;
}

/// Nothing when time was out before the last one.
std::optional<Times> simulate_draws(const std::vector<Entry>& ranking, const Planning& job,
                                    ClusterDraws& clusters, int draws, const OutOfTime& out_of_time) {
  const std::vector<Road> roads = roads_of(ranking);
  std::vector<FlatPlan> plans;
  std::vector<std::size_t> road_of;
  plans.reserve(ranking.size());
  road_of.reserve(ranking.size());
  for (const Entry& entry : ranking) {
    plans.emplace_back(entry.plan, job.work);
    road_of.push_back(
        static_cast<std::size_t>(std::find(roads.begin(), roads.end(), entry.plan.road) - roads.begin()));
  }
  const std::vector<std::size_t> first = first_alike(ranking);
  Simulator simulator(job.work);
  Times times(ranking.size());
  std::vector<bool> races(ranking.size(), true);
  for (int draw = 0; draw < draws; ++draw) {
    const Cluster& cluster = clusters.draw(draw);
    std::vector<RoadCost> costs;
    costs.reserve(roads.size());
    for (const Road& road : roads) costs.push_back(road_cost(road, cluster, job.workers));
    const std::vector<FlatRoad> flat(costs.begin(), costs.end());
    std::optional<Slowed> slowed;
    if (cluster.contention.value != job.work.contention) slowed.emplace(job, cluster);
    Simulator& by = slowed ? slowed->simulator : simulator;
    for (std::size_t i = 0; i < plans.size(); ++i) {
      if (!races[i]) continue;
      if (is_out(out_of_time)) return std::nullopt;
      times[i].push_back(first[i] < i ? times[first[i]].back() : by.time(plans[i], flat[road_of[i]]).count());
    }
    if (static_cast<std::size_t>(draw) + 1 == kHeat) races = in_the_race(times);
  }
  return times;
}

/// By entry, where every cost is as large as the fits' doubt leaves it.
std::vector<Seconds> at_upper_limits(const std::vector<Entry>& ranking, const Planning& job,
                                     const Cluster& cluster) {
  const Cluster most = at_limits(cluster, Limit::kUpper);
  Slowed slowed(job, most);
  const std::vector<Road> roads = roads_of(ranking);
  std::vector<RoadCost> costs;
  costs.reserve(roads.size());
  for (const Road& road : roads) costs.push_back(road_cost(road, most, job.workers));
  const std::vector<FlatRoad> flat(costs.begin(), costs.end());
  std::vector<Seconds> times;
  times.reserve(ranking.size());
  for (const Entry& entry : ranking) {
    const auto road = std::ranges::find(roads, entry.plan.road) - roads.begin();
    times.push_back(
        slowed.simulator.time(FlatPlan(entry.plan, slowed.work), flat[static_cast<std::size_t>(road)]));
  }
  return times;
}

/// Leaves out the entries that lose where costs are as large as the fits' doubt leaves them: a plan whose
/// last message is only just in time is as fast as any by prediction, and late as soon as a cost is more.
void keep_robust(const std::vector<Entry>& ranking, std::vector<std::size_t>& entries) {
  const auto time = [&](std::size_t i) { return ranking[i].doubt->at_upper_limits; };
  const Seconds least = time(*std::ranges::min_element(entries, {}, time));
  std::erase_if(entries, [&](std::size_t i) { return time(i) > least * (1 + kIndifferent); });
}

}  // namespace

ClusterDraws::ClusterDraws(const Cluster& cluster, const std::vector<Road>& roads, int count,
                           std::uint64_t seed)
    : cluster_(cluster), count_(count) {
  std::erase_if(cluster_.operations, [&](const OperationFit& fit) {
    return std::none_of(roads.begin(), roads.end(),
                        [&](const Road& road) { return related(road, fit.road); });
  });
  // Each fit has a stream of its own, so their order must not depend on when what was measured.
  const auto key = [](const OperationFit& fit) {
    return std::tuple(describe(fit.road), fit.operation, fit.workers);
  };
  std::stable_sort(cluster_.operations.begin(), cluster_.operations.end(),
                   [&](const OperationFit& a, const OperationFit& b) { return key(a) < key(b); });
  std::uint64_t stream = seed;
  for (auto& [kind, link] : cluster_.links) {
    for (Fit* fit : {&link.alone, &link.streamed, &link.duplex}) add(*fit, ++stream);
  }
  for (OperationFit& operation : cluster_.operations) {
    for (Fit* fit : {&operation.alone, &operation.streamed}) add(*fit, ++stream);
  }
  Random random(seed);
  for (const auto member : kScalars) {
    const Scalar& scalar = cluster_.*member;
    in_doubt_ = in_doubt_ || scalar.half_width > 0;
    std::vector<double>& values = scalars_.emplace_back();
    values.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) {
      values.push_back(std::max(0.0, scalar.value + scalar.half_width / kHalfWidth * random.normal()));
    }
  }
}

void ClusterDraws::add(Fit& fit, std::uint64_t seed) {
  if (fit.covariance.empty() || fit.curve.empty()) return;
  in_doubt_ = true;
  drawn_.push_back({&fit.curve, draw_curves(fit, count_, seed)});
}

const Cluster& ClusterDraws::draw(int index) {
  const auto i = static_cast<std::size_t>(index);
  for (Drawn& drawn : drawn_) *drawn.target = drawn.curves[i];
  for (std::size_t s = 0; s < kScalars.size(); ++s) (cluster_.*kScalars[s]).value = scalars_[s][i];
  return cluster_;
}

bool judge_under_doubt(std::vector<Entry>& ranking, const Planning& job, const Cluster& cluster, int draws,
                       std::uint64_t seed, const OutOfTime& out_of_time) {
  if (is_out(out_of_time)) return false;
  ClusterDraws clusters(cluster, roads_of(ranking), draws, seed);
  const int runs = clusters.in_doubt() ? draws : 1;
  std::optional<Times> simulated = simulate_draws(ranking, job, clusters, runs, out_of_time);
  if (!simulated || is_out(out_of_time)) return false;
  Times& times = *simulated;
  const std::vector<double> best = best_of(times);
  const std::vector<Seconds> most = at_upper_limits(ranking, job, cluster);
  for (std::size_t i = 0; i < ranking.size(); ++i) {
    Doubt doubt;
    doubt.at_upper_limits = most[i];
    const auto drawn = static_cast<double>(times[i].size());
    for (std::size_t d = 0; d < times[i].size(); ++d) {
      doubt.expected_regret += best[d] > 0 ? (times[i][d] / best[d] - 1) / drawn : 0;
      doubt.probability_best += times[i][d] <= best[d] * (1 + 1e-9) ? 1 / drawn : 0;
    }
    doubt.low = Seconds{percentile(times[i], 0.05)};
    doubt.high = Seconds{percentile(times[i], 0.95)};
    ranking[i].doubt = doubt;
  }
  return true;
}

Decision decide(const std::vector<Entry>& ranking) {
  const auto regret = [&](std::size_t i) { return ranking[i].doubt->expected_regret; };
  std::size_t least = 0;
  for (std::size_t i = 1; i < ranking.size(); ++i) {
    if (regret(i) < regret(least)) least = i;
  }
  // Where nothing is in doubt only plans that are exactly as good are as good.
  const bool sure = ranking[least].doubt->probability_best >= kSure;
  const double tolerance = sure ? kSame : kIndifferent;
  std::vector<std::size_t> equals;
  for (std::size_t i = 0; i < ranking.size(); ++i) {
    if (regret(i) <= regret(least) + tolerance) equals.push_back(i);
  }
  keep_robust(ranking, equals);
  std::size_t fewest = ranking[equals.front()].messages;
  for (const std::size_t i : equals) fewest = std::min(fewest, ranking[i].messages);
  const auto rank = [&](std::size_t i) {
    const Entry& entry = ranking[i];
    return std::tuple(entry.messages > kCrowd * fewest, effort_of(entry), entry.messages, regret(i));
  };
  const auto simpler = [&](std::size_t a, std::size_t b) { return rank(a) < rank(b); };
  return {*std::min_element(equals.begin(), equals.end(), simpler), sure || equals.size() == 1};
}

}  // namespace commtune::tuner
