#include "tuner/race.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "perfmodel/cost/stage_cost.h"

namespace commtune::tuner {

namespace {

/// After so many draws a plan is out of the race that, going by its mean and its scatter, is slower than
/// another one by more than anybody would notice in all draws but one of two hundred (so many standard
/// deviations, by Student's t): more draws would tell its own times more precisely, and nothing of the choice
/// (Maron, Moore: Hoeffding races, 1994).
struct Heat {
  std::size_t draws = 0;
  double deviations = 0;
};
constexpr std::array kHeats{Heat{4, 5.8}, Heat{8, 3.5}, Heat{16, 3}};
/// And one that was never faster, and whose mean regret over all draws is as surely more than the other's by
/// this much, which is more than the other's optimism evens out.
constexpr double kBeyondOptimism = 0.01;

struct Regret {
  double mean = 0, deviation = 0;
  bool always_more = true;
};

/// How much more an entry regrets than another one.
Regret regret_beyond(std::span<const double> entry, std::span<const double> other,
                     std::span<const double> best) {
  const auto n = static_cast<double>(best.size());
  double sum = 0, squares = 0;
  bool always_more = true;
  for (std::size_t d = 0; d < best.size(); ++d) {
    const double more = best[d] > 0 ? (entry[d] - other[d]) / best[d] : 0;
    always_more = always_more && more > 0;
    sum += more;
    squares += more * more;
  }
  const double variance = n > 1 ? std::max(0.0, squares - sum * sum / n) / (n - 1) : 0;
  return {sum / n, std::sqrt(variance), always_more};
}

/// The entry of least regret of those that took part in all draws.
std::size_t leader_of(const Times& times, const std::vector<double>& best) {
  std::size_t leader = 0;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (times[i].size() < best.size()) continue;
    const double regret = regret_beyond(times[i], best, best).mean;
    if (regret < least) leader = i;
    least = std::min(least, regret);
  }
  return leader;
}

/// Whether an entry is surely slower than another one.
bool is_beaten(const std::vector<double>& entry, const std::vector<double>& other,
               const std::vector<double>& best, double deviations) {
  const Regret beyond = regret_beyond(entry, other, best);
  const double scatter = deviations * beyond.deviation,
               of_mean = scatter / std::sqrt(static_cast<double>(best.size()));
  return beyond.mean - scatter > kIndifferent ||
         (beyond.always_more && beyond.mean - of_mean > kBeyondOptimism);
}

/// Those that took part in all draws and are beaten by none of them.
std::vector<bool> in_the_race(const Times& times, double deviations) {
  const std::vector<double> best = best_of(times);
  std::vector<std::size_t> complete;
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (times[i].size() == best.size()) complete.push_back(i);
  }
  std::vector<bool> in(times.size(), false);
  for (const std::size_t i : complete) {
    in[i] = std::ranges::none_of(
        complete, [&](std::size_t other) { return is_beaten(times[i], times[other], best, deviations); });
  }
  return in;
}

/// Whether more draws would tell nothing of the choice: the entry's mean is surely more than the leader's by
/// what anybody would notice, or surely not, with half of the distance to spare.
bool is_told(std::span<const double> entry, std::span<const double> leader) {
  const std::span<const double> seen = leader.first(entry.size());
  const Regret beyond = regret_beyond(entry, seen, seen);
  const double of_mean =
      kHeats.back().deviations * beyond.deviation / std::sqrt(static_cast<double>(entry.size()));
  return of_mean <= std::abs(beyond.mean - kIndifferent) / 2;
}

/// Fills in the draws that were not simulated: what the leader takes there, by what the entry took beside it
/// on one that was, each in turn. What moves all plans alike is so in every draw (a control variate).
void fill_in(Times& times) {
  const std::vector<double> leader = times[leader_of(times, best_of(times))];
  for (std::vector<double>& of_entry : times) {
    const std::size_t seen = of_entry.size();
    of_entry.reserve(leader.size());
    for (std::size_t d = seen; d < leader.size(); ++d)
      of_entry.push_back(leader[d] * (of_entry[d % seen] / leader[d % seen]));
  }
}

/// By entry the first one that is the same plan.
std::vector<std::size_t> first_alike(const std::vector<Entry>& ranking) {
  std::vector<std::string> digests;
  std::vector<std::size_t> first;
  digests.reserve(ranking.size());
  first.reserve(ranking.size());
  for (const Entry& entry : ranking) {
    digests.push_back(plan_digest(entry));
    first.push_back(static_cast<std::size_t>(std::find(digests.begin(), digests.end(), digests.back()) -
                                             digests.begin()));
  }
  return first;
}

/// A draw of the fits: what roads cost, each once it is asked for, and the job where traffic is slowed by
/// another contention.
struct PricedDraw {
  struct PricedRoad {
    explicit PricedRoad(RoadCost of_road) : cost(std::move(of_road)), flat(coarse(FlatRoad(cost))) {}
    RoadCost cost;
    /// Refers to `cost`. What a draw makes of an iteration, as a part of what the fitted costs make of it, is
    /// hardly another if simulated coarsely.
    FlatRoad flat;
  };

  PricedDraw(std::size_t roads, const Planning& job, const Cluster& cluster) : priced(roads) {
    if (cluster.contention.value != job.work.contention) slowed = std::make_unique<Slowed>(job, cluster);
  }
  std::vector<std::unique_ptr<const PricedRoad>> priced;  ///< by road
  std::unique_ptr<Slowed> slowed;
};

/// Simulates the entries of a ranking on the draws, each as far as its times may matter.
class Race {
 public:
  Race(const std::vector<Entry>& ranking, const std::vector<Seconds>& comparable, const Planning& job,
       ClusterDraws& clusters, int draws, const OutOfTime& out_of_time)
      : job_(job),
        clusters_(clusters),
        out_of_time_(out_of_time),
        draws_(static_cast<std::size_t>(draws)),
        roads_(roads_of(ranking)),
        first_(first_alike(ranking)),
        simulator_(job.work),
        times_(ranking.size()) {
    draws_so_far_.reserve(draws_);
    plans_.reserve(ranking.size());
    taken_.reserve(ranking.size());
    road_of_.reserve(ranking.size());
    fine_over_coarse_.reserve(ranking.size());
    for (std::size_t i = 0; i < ranking.size(); ++i) {
      const Entry& entry = ranking[i];
      plans_.emplace_back(entry.plan, job.work);
      taken_.push_back(entry.run_deviation > 0 ? std::optional(entry.prediction.iteration.count())
                                               : std::nullopt);
      road_of_.push_back(static_cast<std::size_t>(std::find(roads_.begin(), roads_.end(), entry.plan.road) -
                                                  roads_.begin()));
      fine_over_coarse_.push_back(fine_over_coarse(entry, comparable[i]));
    }
  }

  /// Nothing when time was out before the end.
  std::optional<Times> run() && {
    std::vector<bool> races(plans_.size(), true);
    for (const Heat& heat : kHeats) {
      run_heat(races, std::min(heat.draws, draws_));
      if (late_) return std::nullopt;
      if (heat.draws < draws_) races = in_the_race(times_, heat.deviations);
    }
    if (draws_ > kHeats.back().draws) run_racers(races);
    for (std::size_t i = 0; i < plans_.size(); ++i) {
      if (taken_[i]) run_until(i, draws_);  // the same on all
    }
    if (late_) return std::nullopt;
    fill_in(times_);
    return std::move(times_);
  }

 private:
  /// All draws up to this one, of those that race.
  void run_heat(const std::vector<bool>& races, std::size_t draws) {
    for (std::size_t i = 0; i < plans_.size(); ++i) {
      if (races[i]) run_until(i, draws);
    }
  }

  /// Fewer draws when time is out.
  void run_until(std::size_t entry, std::size_t draw) {
    while (times_[entry].size() < draw && in_time()) run_next(entry);
  }

  bool in_time() {
    late_ = late_ || is_out(out_of_time_);
    return !late_;
  }

  void run_next(std::size_t entry) {
    std::vector<double>& times = times_[entry];
    if (taken_[entry]) return times.push_back(*taken_[entry]);
    const std::vector<double>& alike = times_[first_[entry]];
    times.push_back(alike.size() > times.size() ? alike[times.size()] : simulated(entry, times.size()));
  }

  double simulated(std::size_t entry, std::size_t draw) {
    const FlatRoad& road = priced(draw, road_of_[entry]);
    Simulator& simulator = draws_so_far_[draw].slowed ? draws_so_far_[draw].slowed->simulator : simulator_;
    return fine_over_coarse_[entry] * simulator.time(plans_[entry], road).count();
  }

  /// What the last entry takes under the fitted costs over what it takes by a coarse simulation.
  double fine_over_coarse(const Entry& entry, Seconds comparable) {
    const RoadOption* option = job_.option_of(entry.plan.road);
    if (option == nullptr || entry.run_deviation > 0) return 1;
    const FlatRoad fine(option->cost), road = coarse(fine);
    const bool as_compared = road.rounds() == fine.rounds();
    const Seconds coarsely = as_compared ? comparable : simulator_.time(plans_.back(), road);
    return coarsely.count() > 0 ? entry.prediction.iteration / coarsely : 1;
  }

  /// Roads whose plans are all out of the race are not priced any more.
  const FlatRoad& priced(std::size_t draw, std::size_t road) {
    while (draws_so_far_.size() <= draw)
      draws_so_far_.emplace_back(roads_.size(), job_, clusters_.draw(static_cast<int>(draws_so_far_.size())));
    std::unique_ptr<const PricedDraw::PricedRoad>& found = draws_so_far_[draw].priced[road];
    if (!found) {
      const Cluster& cluster = clusters_.draw(static_cast<int>(draw));
      RoadCost cost = road_cost(roads_[road], cluster, job_.workers, CostDetail::kTimes);
      found = std::make_unique<const PricedDraw::PricedRoad>(
          with_delay(std::move(cost), job_.delay_of(roads_[road])));
    }
    return found->flat;
  }

  /// The draws after the last heat, of the leader all and of others as many as tell what they take beside it.
  void run_racers(const std::vector<bool>& races) {
    const std::size_t leader = leader_of(times_, best_of(times_));
    run_until(leader, draws_);
    for (std::size_t i = 0; i < plans_.size() && !late_; ++i) {
      while (races[i] && times_[i].size() < draws_ && !is_told(times_[i], times_[leader]) && in_time())
        run_next(i);
    }
  }

  const Planning& job_;
  ClusterDraws& clusters_;
  const OutOfTime& out_of_time_;
  const std::size_t draws_;
  const std::vector<Road> roads_;
  const std::vector<std::size_t> first_;
  Simulator simulator_;
  std::vector<PricedDraw> draws_so_far_;
  std::vector<FlatPlan> plans_;
  std::vector<std::optional<double>> taken_;  ///< of plans that were run: seconds
  std::vector<std::size_t> road_of_;
  std::vector<double> fine_over_coarse_;
  Times times_;
  bool late_ = false;
};

}  // namespace

std::vector<Road> roads_of(const std::vector<Entry>& ranking) {
  std::vector<Road> roads;
  for (const Entry& entry : ranking) {
    if (std::find(roads.begin(), roads.end(), entry.plan.road) == roads.end())
      roads.push_back(entry.plan.road);
  }
  return roads;
}

std::vector<double> best_of(const Times& times) {
  std::vector<double> best;
  for (const std::vector<double>& of_entry : times) {
    best.resize(std::max(best.size(), of_entry.size()), std::numeric_limits<double>::infinity());
    for (std::size_t d = 0; d < of_entry.size(); ++d) best[d] = std::min(best[d], of_entry[d]);
  }
  return best;
}

double share_of_wins(const std::vector<double>& times, const std::vector<double>& best) {
  std::size_t wins = 0;
  for (std::size_t d = 0; d < times.size(); ++d) {
    if (is_best(times[d], best[d])) ++wins;
  }
  return static_cast<double>(wins) / static_cast<double>(times.size());
}

std::optional<Times> race(const std::vector<Entry>& ranking, const std::vector<Seconds>& comparable,
                          const Planning& job, ClusterDraws& clusters, int draws,
                          const OutOfTime& out_of_time) {
  return Race(ranking, comparable, job, clusters, draws, out_of_time).run();
}

}  // namespace commtune::tuner
