#include "tuner/doubt.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "perfmodel/base/digest.h"
#include "perfmodel/base/normal.h"
#include "perfmodel/cost/prediction_limits.h"
#include "perfmodel/cost/stage_cost.h"
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

/// What an iteration takes beside its layers and messages no fit tells, and no plan hides: a standard
/// deviation of what nobody would notice, at both ends of a 90 % range.
constexpr double kUntold = kNormal90 * kIndifferent;

double percentile(std::vector<double>& values, double q) {
  const auto at = values.begin() + std::lround(q * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

/// By entry, where every cost is as large as the fits' doubt leaves it.
///
/// comparable  comparable_times() of the ranking
std::vector<Seconds> at_upper_limits(const std::vector<Entry>& ranking,
                                     const std::vector<Seconds>& comparable, const Planning& job,
                                     const Cluster& cluster) {
  const Cluster most = at_limits(cluster, Limit::kUpper);
  Slowed slowed(job, most);
  const std::vector<Road> roads = roads_of(ranking);
  std::vector<RoadCost> costs;
  costs.reserve(roads.size());
  for (const Road& road : roads) {
    RoadCost cost = moved(road_cost(road, most, job.workers), kNormal90, cluster.plan_deviation);
    costs.push_back(with_delay(std::move(cost), job.delay_of(road), kNormal90));
  }
  std::vector<FlatRoad> flat;
  flat.reserve(roads.size());
  for (const RoadCost& cost : costs) flat.push_back(among_neighbours(FlatRoad(cost)));
  std::vector<Seconds> times;
  times.reserve(ranking.size());
  for (std::size_t i = 0; i < ranking.size(); ++i) {
    const Entry& entry = ranking[i];
    if (entry.run_deviation > 0) {
      times.push_back(entry.prediction.iteration * std::exp(kNormal90 * entry.run_deviation));
      continue;
    }
    const auto road = std::ranges::find(roads, entry.plan.road) - roads.begin();
    const Seconds time =
        slowed.simulator.time(FlatPlan(entry.plan, slowed.work), flat[static_cast<std::size_t>(road)]);
    const bool takes_time = comparable[i] > Seconds{0};
    times.push_back(takes_time ? time * (entry.prediction.iteration / comparable[i]) : time);
  }
  return times;
}

double mean_regret(const std::vector<double>& times, const std::vector<double>& best) {
  double sum = 0;
  for (std::size_t d = 0; d < times.size(); ++d) sum += best[d] > 0 ? times[d] / best[d] - 1 : 0;
  return sum / static_cast<double>(times.size());
}

/// How much of its time the factors take from an entry in the draws in which it is the fastest, on average.
/// without  its times without them, which serve in turn
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

/// What the draws say of the entries of a ranking, each in its place.
struct Judged {
  explicit Judged(std::size_t entries) : raced(entries), responses(entries), most(entries) {}

  /// places  of the part's entries in this
  void put(const std::vector<std::size_t>& places, Judged part) {
    for (std::size_t i = 0; i < places.size(); ++i) {
      raced[places[i]] = std::move(part.raced[i]);
      responses[places[i]] = part.responses[i];
      most[places[i]] = part.most[i];
    }
    part_draws_.emplace_back(places, part.draws);
    draws = std::max(draws, part.draws);
  }

  /// Over a transport whose fits are in no doubt one draw is as good as all.
  void even_out() {
    for (const auto& [places, own] : part_draws_) {
      if (own == draws) continue;
      for (const std::size_t i : places) raced[i].resize(draws, raced[i].front());
    }
  }

  Times raced;
  std::vector<Response> responses;
  std::vector<Seconds> most;
  std::size_t draws = 1;

 private:
  std::vector<std::pair<std::vector<std::size_t>, std::size_t>> part_draws_;
};

/// Nothing when time was out before.
std::optional<Judged> judged_over(const std::vector<Entry>& ranking, const TransportView& view, int draws,
                                  std::uint64_t seed, const OutOfTime& out_of_time) {
  if (is_out(out_of_time)) return std::nullopt;
  ClusterDraws clusters(view.cluster, roads_of(ranking), draws, seed);
  const int runs = clusters.in_doubt() ? draws : 1;
  const std::vector<Seconds> comparable = comparable_times(ranking, view.job);
  std::optional<Times> raced = race(ranking, comparable, view.job, clusters, runs, out_of_time);
  if (!raced || is_out(out_of_time)) return std::nullopt;
  Judged judged(ranking.size());
  judged.draws = static_cast<std::size_t>(runs);
  judged.raced = std::move(*raced);
  judged.responses = responses(ranking, comparable, view.job, view.cluster, out_of_time);
  if (is_out(out_of_time)) return std::nullopt;
  judged.most = at_upper_limits(ranking, comparable, view.job, view.cluster);
  return judged;
}

/// By their places in the ranking.
std::vector<std::size_t> entries_over(const std::vector<Entry>& ranking, const TransportView& view) {
  std::vector<std::size_t> own;
  for (std::size_t i = 0; i < ranking.size(); ++i) {
    if (ranking[i].plan.transport == view.transport) own.push_back(i);
  }
  return own;
}

std::vector<Entry> picked(const std::vector<Entry>& ranking, const std::vector<std::size_t>& places) {
  std::vector<Entry> entries;
  entries.reserve(places.size());
  for (const std::size_t i : places) entries.push_back(ranking[i]);
  return entries;
}

/// Draws of each transport's fits of their own.
std::uint64_t seed_over(const std::string& transport, std::uint64_t seed) {
  return Digest().add(transport).add(seed).value();
}

}  // namespace

bool judge_under_doubt(std::vector<Entry>& ranking, const std::vector<TransportView>& views, int draws,
                       std::uint64_t seed, const OutOfTime& out_of_time) {
  Judged judged(ranking.size());
  for (const TransportView& view : views) {
    const std::vector<std::size_t> own = entries_over(ranking, view);
    if (own.empty()) continue;
    std::optional<Judged> part =
        views.size() == 1
            ? judged_over(ranking, view, draws, seed, out_of_time)
            : judged_over(picked(ranking, own), view, draws, seed_over(view.transport, seed), out_of_time);
    if (!part) return false;
    judged.put(own, std::move(*part));
  }
  judged.even_out();
  const bool respond_any =
      std::ranges::any_of(judged.responses, [](const Response& response) { return response.doubted; });
  Times times = respond_any ? with_factors(judged.raced, ranking, judged.responses,
                                           kFactorDraws * static_cast<std::size_t>(draws), seed,
                                           views.front().job.alone)
                            : judged.raced;
  const std::vector<double> best = best_of(times);
  for (std::size_t i = 0; i < ranking.size(); ++i) {
    std::vector<double>& of_entry = times[i];
    Doubt doubt;
    doubt.at_upper_limits = judged.most[i];
    doubt.probability_best = share_of_wins(of_entry, best);
    doubt.expected_regret = mean_regret(of_entry, best);
    doubt.optimism = optimism_of(of_entry, best, judged.raced[i]);
    const double untold = respond_any ? kUntold : 0;
    doubt.low = Seconds{percentile(of_entry, 0.05) * std::exp(-untold)};
    doubt.high = Seconds{percentile(of_entry, 0.95) * std::exp(untold)};
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
