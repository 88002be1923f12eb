#include "tuner/doubt.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
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

/// Share of its draws in which an entry is the best one.
double share_of_wins(const std::vector<double>& times, const std::vector<double>& best) {
  std::size_t wins = 0;
  for (std::size_t d = 0; d < times.size(); ++d) {
    if (times[d] <= best[d] * (1 + kSame)) ++wins;
  }
  return static_cast<double>(wins) / static_cast<double>(times.size());
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

/// A draw of the fits: what every road costs, and the job where traffic is slowed by another contention.
struct PricedDraw {
  PricedDraw(const std::vector<Road>& roads, const Planning& job, const Cluster& cluster) {
    costs.reserve(roads.size());
    for (const Road& road : roads) costs.push_back(road_cost(road, cluster, job.workers));
    flat.reserve(costs.size());
    for (const RoadCost& cost : costs) flat.emplace_back(cost);
    if (cluster.contention.value != job.work.contention) slowed = std::make_unique<Slowed>(job, cluster);
  }
  std::vector<RoadCost> costs;
  std::vector<FlatRoad> flat;
  std::unique_ptr<Slowed> slowed;
};

/// Simulates the entries of a ranking on the draws, each as far as its times may matter.
class Race {
 public:
  Race(const std::vector<Entry>& ranking, const Planning& job, ClusterDraws& clusters, int draws,
       const OutOfTime& out_of_time)
      : job_(job),
        clusters_(clusters),
        out_of_time_(out_of_time),
        draws_(static_cast<std::size_t>(draws)),
        roads_(roads_of(ranking)),
        first_(first_alike(ranking)),
        simulator_(job.work),
        times_(ranking.size()) {
    priced_.reserve(draws_);
    plans_.reserve(ranking.size());
    road_of_.reserve(ranking.size());
    for (const Entry& entry : ranking) {
      plans_.emplace_back(entry.plan, job.work);
      road_of_.push_back(static_cast<std::size_t>(std::find(roads_.begin(), roads_.end(), entry.plan.road) -
                                                  roads_.begin()));
    }
  }

  /// Nothing when time was out before the end.
  std::optional<Times> run() && {
    const std::size_t heat = std::min(kHeat, draws_);
    for (std::size_t draw = 1; draw <= heat; ++draw) {
      for (std::size_t i = 0; i < plans_.size(); ++i) run_until(i, draw);
    }
    if (draws_ > heat && !late_) run_racers();
    if (late_) return std::nullopt;
    return std::move(times_);
  }

 private:
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
    const std::vector<double>& alike = times_[first_[entry]];
    const PricedDraw& draw = priced(times.size());
    Simulator& simulator = draw.slowed ? draw.slowed->simulator : simulator_;
    times.push_back(alike.size() > times.size()
                        ? alike[times.size()]
                        : simulator.time(plans_[entry], draw.flat[road_of_[entry]]).count());
  }

  const PricedDraw& priced(std::size_t draw) {
    while (priced_.size() <= draw)
      priced_.emplace_back(roads_, job_, clusters_.draw(static_cast<int>(priced_.size())));
    return priced_[draw];
  }

  /// The draws after the heat. The leader goes first: by its times others may be out of the race before the
  /// last draw.
  void run_racers() {
    const std::vector<bool> races = in_the_race(times_);
    const std::size_t leader = leader_of(times_, best_of(times_));
    run_until(leader, draws_);
    std::vector<std::size_t> left;
    for (std::size_t i = 0; i < plans_.size() && !late_; ++i) {
      if (!races[i]) continue;
      while (times_[i].size() < draws_ && !is_hopeless(i, leader) && in_time()) run_next(i);
      if (times_[i].size() < draws_) left.push_back(i);
    }
    if (late_ || !has_sure_winner()) return;
    // Whether one is sure to be the best depends on how often anybody else is.
    for (const std::size_t i : left) run_until(i, draws_);
  }

  /// Whether an entry was never faster than another one, and will regret more than that in the mean over all
  /// draws, by what anybody would notice, even if in those that are left it were as fast as compute lets it
  /// be. Then it cannot be chosen.
  bool is_hopeless(std::size_t entry, std::size_t other) const {
    const double compute = job_.work.real(job_.work.compute(), job_.work.compute());
    double more = 0;  // sum over all draws; the best of a draw takes between `compute` and the other's time
    for (std::size_t d = 0; d < draws_; ++d) {
      const bool seen = d < times_[entry].size();
      const double late = (seen ? times_[entry][d] : compute) - times_[other][d];
      if (seen && late <= 0) return false;
      more += late / (late > 0 ? times_[other][d] : compute);
    }
    return more > kIndifferent * static_cast<double>(draws_);
  }

  bool has_sure_winner() const {
    const std::vector<double> best = best_of(times_);
    return std::ranges::any_of(times_, [&](const std::vector<double>& times) {
      return times.size() == best.size() && share_of_wins(times, best) >= kSure;
    });
  }

  const Planning& job_;
  ClusterDraws& clusters_;
  const OutOfTime& out_of_time_;
  const std::size_t draws_;
  const std::vector<Road> roads_;
  const std::vector<std::size_t> first_;
  Simulator simulator_;
  std::vector<PricedDraw> priced_;  ///< room for all draws is reserved: their addresses stay
  std::vector<FlatPlan> plans_;
  std::vector<std::size_t> road_of_;
  Times times_;
  bool late_ = false;
};

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
  std::optional<Times> raced = Race(ranking, job, clusters, runs, out_of_time).run();
  if (!raced || is_out(out_of_time)) return false;
  Times& times = *raced;
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
