#include "tuner/doubt.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>

#include "perfmodel/base/normal.h"
#include "perfmodel/cost/prediction_limits.h"
#include "tuner/cluster_draws.h"
#include "tuner/factors.h"
#include "tuner/race.h"

namespace commtune::tuner {

namespace {

/// Messages are work for the hosts: more than so many times as many as an equally good plan has are not worth
/// a simpler method.
constexpr std::size_t kCrowd = 8;

/// Factors cost little: so many times as many draws of them as of the fits.
constexpr std::size_t kFactorDraws = 4;
/// A mean over fewer draws says nothing.
constexpr std::size_t kFewestWins = 8;

double percentile(std::vector<double>& values, double q) {
  const auto at = values.begin() + std::lround(q * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

/// By entry, where every cost is as large as the fits' doubt leaves it.
std::vector<Seconds> at_upper_limits(const std::vector<Entry>& ranking, const Planning& job,
                                     const Cluster& cluster) {
  const Cluster most = at_limits(cluster, Limit::kUpper);
  Slowed slowed(job, most);
  const std::vector<Road> roads = roads_of(ranking);
  std::vector<RoadCost> costs;
  costs.reserve(roads.size());
  for (const Road& road : roads) {
    costs.push_back(moved(road_cost(road, most, job.workers), kNormal90, cluster.plan_deviation));
  }
  const std::vector<FlatRoad> flat(costs.begin(), costs.end());
  std::vector<Seconds> times;
  times.reserve(ranking.size());
  for (const Entry& entry : ranking) {
    if (entry.run_deviation > 0) {
      times.push_back(entry.prediction.iteration * std::exp(kNormal90 * entry.run_deviation));
      continue;
    }
    const auto road = std::ranges::find(roads, entry.plan.road) - roads.begin();
    times.push_back(
        slowed.simulator.time(FlatPlan(entry.plan, slowed.work), flat[static_cast<std::size_t>(road)]));
  }
  return times;
}

double mean_regret(const std::vector<double>& times, const std::vector<double>& best) {
  double sum = 0;
  for (std::size_t d = 0; d < times.size(); ++d) sum += best[d] > 0 ? times[d] / best[d] - 1 : 0;
  return sum / static_cast<double>(times.size());
}

/// How much of its time the factors take from an entry in the draws in which it is the fastest, on average.
/// without  its times without them; those of few draws serve in turn
double optimism_of(const std::vector<double>& times, const std::vector<double>& best,
                   const std::vector<double>& without) {
  double sum = 0;
  std::size_t wins = 0;
  for (std::size_t d = 0; d < times.size(); ++d) {
    if (!is_best(times[d], best[d])) continue;
    sum += std::log(without[d % without.size()] / times[d]);
    ++wins;
  }
  return wins < kFewestWins ? 0 : std::max(0.0, std::expm1(sum / static_cast<double>(wins)));
}

/// Leaves out the entries that lose where costs are as large as the fits' doubt leaves them: a plan whose
/// last message is only just in time is as fast as any by prediction, and late as soon as a cost is more.
void keep_robust(const std::vector<Entry>& ranking, std::vector<std::size_t>& entries) {
  const auto time = [&](std::size_t i) { return ranking[i].doubt->at_upper_limits; };
  const Seconds least = time(*std::ranges::min_element(entries, {}, time));
  std::erase_if(entries, [&](std::size_t i) { return time(i) > least * (1 + kIndifferent); });
}

}  // namespace

bool judge_under_doubt(std::vector<Entry>& ranking, const Planning& job, const Cluster& cluster, int draws,
                       std::uint64_t seed, const OutOfTime& out_of_time) {
  if (is_out(out_of_time)) return false;
  ClusterDraws clusters(cluster, roads_of(ranking), draws, seed);
  const int runs = clusters.in_doubt() ? draws : 1;
  const std::optional<Times> raced = race(ranking, job, clusters, runs, out_of_time);
  if (!raced || is_out(out_of_time)) return false;
  const std::vector<Response> respond = responses(ranking, job, cluster, out_of_time);
  if (is_out(out_of_time)) return false;
  const bool respond_any =
      std::ranges::any_of(respond, [](const Response& response) { return response.doubted; });
  Times times = respond_any ? with_factors(*raced, ranking, respond,
                                           kFactorDraws * static_cast<std::size_t>(draws), seed)
                            : *raced;
  const std::vector<double> best = best_of(times);
  const std::vector<Seconds> most = at_upper_limits(ranking, job, cluster);
  for (std::size_t i = 0; i < ranking.size(); ++i) {
    std::vector<double>& of_entry = times[i];
    Doubt doubt;
    doubt.at_upper_limits = most[i];
    doubt.probability_best = share_of_wins(of_entry, best);
    doubt.expected_regret = mean_regret(of_entry, best);
    doubt.optimism = optimism_of(of_entry, best, (*raced)[i]);
    doubt.low = Seconds{percentile(of_entry, 0.05)};
    doubt.high = Seconds{percentile(of_entry, 0.95)};
    ranking[i].doubt = doubt;
  }
  return true;
}

std::size_t simplest(const std::vector<Entry>& ranking, const std::vector<std::size_t>& equals) {
  std::size_t fewest = ranking[equals.front()].messages;
  for (const std::size_t i : equals) fewest = std::min(fewest, ranking[i].messages);
  return *std::ranges::min_element(equals, {}, [&](std::size_t i) {
    const Entry& entry = ranking[i];
    return std::tuple(entry.messages > kCrowd * fewest, effort_of(entry), entry.messages);
  });
}

Decision decide(const std::vector<Entry>& ranking) {
  const auto regret = [&](std::size_t i) {
    return ranking[i].doubt->expected_regret + ranking[i].doubt->optimism;
  };
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
  const bool alone = equals.size() == 1 && ranking[least].doubt->expected_regret <= kIndifferent;
  std::ranges::stable_sort(equals, {}, regret);
  return {simplest(ranking, equals), sure || alone};
}

}  // namespace commtune::tuner
