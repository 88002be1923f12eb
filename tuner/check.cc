#include "tuner/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "perfmodel/base/error.h"
#include "perfmodel/base/normal.h"
#include "perfmodel/base/overloaded.h"
#include "perfmodel/cost/flat_cost.h"
#include "perfmodel/cost/stage_cost.h"
#include "perfmodel/cost/topology.h"
#include "perfmodel/fit/fit.h"
#include "perfmodel/simulate/simulate.h"
#include "perfmodel/simulate/workload.h"
#include "tuner/planning.h"
#include "tuner/verify.h"

namespace commtune::tuner {

namespace {

/// Roads that are run in a round, and rounds: they share the time that a check has, so that with more of them
/// each would be known from fewer iterations. A later round is for what the one before brought up: other
/// roads, or a chosen plan that was not run itself.
constexpr std::size_t kMostRoads = 3;
constexpr int kMostRounds = 3;
/// Of the time that is left a round takes this part; the rest is for what only the new costs bring up.
/// The last round takes all.
constexpr double kPartOfRound = 2.0 / 3;
/// The factor by which costs are off is smaller than this in 95 of 100 cases. A larger one has another reason
/// than streams that were measured at few sizes, or ranks that share cores.
constexpr double kLargestFactor = 4;
/// By how much costs are changed to see whether a plan shows it: by much, beside what cannot be told apart
/// (kIndifferent), and by so little that the plan works as before.
constexpr double kProbingFactor = 1.1;
constexpr int kBisections = 30;  // of the logarithm's range, 2 ln 4: until it is known to 3e-9

/// A plan's iteration as a function of the factor on its road's costs.
class FactorSearch {
 public:
  FactorSearch(const Plan& plan, const Profile& profile, const Cluster& cluster)
      : cost_(road_cost(plan.road, cluster, plan.workers)),
        work_(profile, slowdown_of(cluster, plan.workers)),
        flat_(plan, work_),
        simulator_(work_) {}

  Seconds time(double factor) {
    const RoadCost cost = slower(cost_, factor);
    return simulator_.time(flat_, FlatRoad(cost));
  }

  /// True if costs a tenth higher do not change the iteration noticeably against costs a tenth lower: then a
  /// run of the plan says nothing about its costs.
  bool is_flat() { return time(kProbingFactor) <= time(1 / kProbingFactor) * (1 + kIndifferent); }

  /// Logarithm of the factor with which this time is predicted.
  double logarithm_for(Seconds measured) {
    double low = -std::log(kLargestFactor), high = -low;
    for (int i = 0; i < kBisections; ++i) {
      const double middle = (low + high) / 2;
      (time(std::exp(middle)) < measured ? low : high) = middle;
    }
    return (low + high) / 2;
  }

 private:
  RoadCost cost_;
  Workload work_;
  FlatPlan flat_;
  Simulator simulator_;
};

/// Whether a plan that tells nothing of its road's costs took another time than they say.
bool is_unexplained(const CheckedPlan& plan) {
  const double off = std::abs(plan.measured / plan.predicted - 1);
  return plan.hidden && off > std::max(plan.half_width / plan.predicted, kIndifferent);
}

/// Measures plans until the time is spent.
class Measuring {
 public:
  explicit Measuring(const CheckOptions& options) : options_(options), begin_(options.clock()) {}

  Seconds elapsed() const { return options_.clock() - begin_; }
  bool is_spent() const { return elapsed() >= options_.budget; }
  const std::vector<CheckedPlan>& checked() const { return checked_; }
  const std::vector<Plan>& plans() const { return plans_; }

  std::vector<Road> roads() const {
    std::vector<Road> roads;
    for (const CheckedPlan& plan : checked_) roads.push_back(plan.road);
    return roads;
  }
  bool has_measured(const Road& road) const {
    return std::ranges::find(checked_, road, &CheckedPlan::road) != checked_.end();
  }
  bool has_run(const Plan& plan) const {
    return std::ranges::find(checked_, digest(plan), &CheckedPlan::digest) != checked_.end();
  }
  bool any_unexplained() const { return std::ranges::any_of(checked_, is_unexplained); }
  std::vector<PlanTime> times() const {
    std::vector<PlanTime> times;
    for (const CheckedPlan& plan : checked_) {
      times.push_back({plan.digest, plan.measured, plan.half_width});
    }
    return times;
  }

  /// Those of the answer's leading plans that were not measured yet, in turn; the very first whatever the
  /// budget. Of the chosen one it has to be the plan itself that was, of others a plan on the same road.
  /// False where it measured nothing.
  bool measure_leading(const Answer& answer, const Profile& profile, const Cluster& cluster, bool last) {
    std::vector<const Entry*> turns;
    for (const std::size_t i : leading_plans(answer)) {
      const Entry& entry = answer.ranking[i];
      if (i == answer.chosen ? !has_run(entry.plan) : !has_measured(entry.plan.road)) turns.push_back(&entry);
    }
    const Seconds left = options_.budget - elapsed();
    const Seconds share =
        left * (last ? 1 : kPartOfRound) / static_cast<double>(std::max<std::size_t>(1, turns.size()));
    const std::size_t before = checked_.size();
    for (const Entry* entry : turns) {
      if (!checked_.empty() && is_spent()) break;
      measure(*entry, profile, cluster, std::max(Seconds{0}, share));
    }
    return checked_.size() > before;
  }

 private:
  void measure(const Entry& entry, const Profile& profile, const Cluster& cluster, Seconds share) {
    std::vector<double> seconds;
    for (const Seconds each : options_.measure(entry, share)) seconds.push_back(each.count());
    const MedianInterval median = median_interval(seconds);
    CheckedPlan checked;
    checked.method = entry.method;
    checked.title = entry.title;
    checked.measured = Seconds{median.median};
    checked.half_width = Seconds{(median.high - median.low) / 2};
    find_factor(checked, entry.plan, profile, cluster);
    checked_.push_back(std::move(checked));
    plans_.push_back(entry.plan);
  }

  const CheckOptions& options_;
  const Seconds begin_;
  std::vector<CheckedPlan> checked_;
  std::vector<Plan> plans_;
};

const Entry& chosen_of(const Answer& answer) { return answer.ranking.at(answer.chosen); }

/// Whether the name of a road is a singular ("1 colocated server").
bool is_one(const Road& road) {
  return match(
      road, [](const AllReduce&) { return true; },
      [](const ParameterServer& servers) { return servers.servers == 1; });
}

/// "Exact fusion took 1.10 times what its road's costs say"; nothing where all plans took what they say.
std::string unexplained_text(const Check& check) {
  std::string text;
  for (const CheckedPlan& plan : check.plans) {
    if (!is_unexplained(plan)) continue;
    text += fmt::format("{}{} took {:.2f} times what its road's costs say", text.empty() ? "" : ", ",
                        plan.title, plan.measured / plan.predicted);
  }
  return text;
}

/// "all-to-all ring costs 1.31 times, 4 colocated servers cost 0.91 times what the probe said"
std::string factors_text(const Check& check) {
  std::string text;
  const bool all_alike =
      std::ranges::all_of(check.factors, [](const RoadFactor& each) { return each.factor == 1; });
  if (check.factors.empty()) {
    const std::string unexplained = unexplained_text(check);
    return unexplained.empty() ? "they hide all that they send, and tell nothing of its costs" : unexplained;
  }
  if (all_alike) return "their roads cost what the probe said";
  for (const RoadFactor& each : check.factors) {
    if (each.factor == 1) continue;
    text += fmt::format("{}{} {} {:.2f} times", text.empty() ? "" : ", ", describe(each.road),
                        is_one(each.road) ? "costs" : "cost", each.factor);
  }
  return text + " what the probe said";
}

}  // namespace

void CheckOptions::check() const {
  if (!(budget.count() > 0))
    throw Error(ErrorCode::kBadInput, "check: budget = " + format_time(budget) + ": must be positive");
}

std::vector<std::size_t> leading_plans(const Answer& answer) {
  const std::vector<std::size_t> overlapping = plans_to_verify(answer, std::numeric_limits<int>::max());
  std::vector<std::size_t> leading;
  const auto road = [&](std::size_t i) -> const Road& { return answer.ranking[i].plan.road; };
  const auto add = [&](const auto& is_known) {
    for (const std::size_t i : overlapping) {
      const bool known = std::ranges::any_of(leading, [&](std::size_t other) { return is_known(i, other); });
      if (!known && leading.size() < kMostRoads) leading.push_back(i);
    }
  };
  add([&](std::size_t i, std::size_t j) { return architecture_of(road(i)) == architecture_of(road(j)); });
  add([&](std::size_t i, std::size_t j) { return road(i) == road(j); });
  return leading;
}

void find_factor(CheckedPlan& checked, const Plan& plan, const Profile& profile, const Cluster& cluster) {
  FactorSearch search(plan, profile, cluster);
  checked.digest = digest(plan);
  checked.road = plan.road;
  checked.workers = plan.workers;
  checked.predicted = search.time(1);
  const Seconds deviation = checked.half_width / kNormal95;
  const double off = std::abs(checked.measured / checked.predicted - 1);
  const double logarithm = search.logarithm_for(checked.measured);
  // A run that took longer than predicted has one of two reasons: its costs are off, or something else made
  // this run late. The one that is fewer of its own standard deviations away is taken. So a plan that hides
  // all its communication, and would need absurd costs to be so late, says nothing about its costs.
  const double of_run =
      std::max(kIndifferent, std::hypot(deviation / checked.predicted, cluster.plan_deviation));
  const double of_costs = std::log(kLargestFactor) / kNormal95;
  checked.hidden = off <= kIndifferent ? search.is_flat() : off / of_run < std::abs(logarithm) / of_costs;
  if (checked.hidden) return;
  checked.deviation = (search.logarithm_for(checked.measured + deviation) -
                       search.logarithm_for(checked.measured - deviation)) /
                      2;
  const bool as_predicted = off * checked.predicted <= checked.half_width;
  checked.factor = as_predicted ? 1 : std::exp(logarithm);
}

std::vector<RoadFactor> road_factors(std::span<const CheckedPlan> plans) {
  std::vector<RoadFactor> factors;
  for (const CheckedPlan& first : plans) {
    if (first.hidden || std::ranges::find(factors, first.road, &RoadFactor::road) != factors.end()) continue;
    double sum = 0, squares = 0, left = 0;
    int count = 0;
    for (const CheckedPlan& plan : plans) {
      if (plan.hidden || plan.road != first.road) continue;
      const double logarithm = std::log(plan.factor);
      sum += logarithm;
      squares += logarithm * logarithm;
      left = std::max(left, plan.deviation);
      ++count;
    }
    const double spread = count > 1 ? std::max(0.0, squares - sum * sum / count) / (count - 1) : 0;
    factors.push_back({first.road, std::exp(sum / count), std::hypot(left, std::sqrt(spread))});
  }
  return factors;
}

CheckedAnswer check(const Answer& unchecked, const Profile& profile, const Cluster& cluster,
                    const CheckOptions& options) {
  options.check();
  CheckedAnswer result{unchecked, cluster, {}};
  Measuring measuring(options);
  Check check;
  check.before = chosen_of(unchecked).method;
  check.before_title = chosen_of(unchecked).title;
  try {
    for (int round = 1; round <= kMostRounds; ++round) {
      if (!measuring.measure_leading(result.answer, profile, cluster, round == kMostRounds)) break;
      check.factors = road_factors(measuring.checked());
      if (check.factors.empty() && !measuring.any_unexplained()) break;
      result.cluster = refitted(cluster, check.factors, unchecked.workers);
      result.answer = options.plan(result.cluster, {}, measuring.times());
      if (measuring.has_run(chosen_of(result.answer).plan) || measuring.is_spent()) break;
    }
    if (const Entry& chosen = chosen_of(result.answer); !measuring.has_measured(chosen.plan.road)) {
      check.passed_over = fmt::format("{} over {}", chosen.title, describe(chosen.plan.road));
      result.answer = options.plan(result.cluster, measuring.roads(), measuring.times());
    }
    check.changed = digest(chosen_of(result.answer).plan) != digest(chosen_of(unchecked).plan);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInterrupted || error.code() == ErrorCode::kStorage) throw;
    result.answer = unchecked;
    result.cluster = cluster;
    check.factors.clear();
    check.passed_over.clear();
    check.failure = error.what();
  }
  check.plans = measuring.checked();
  check.elapsed = measuring.elapsed();
  result.plans = measuring.plans();
  result.answer.check = std::move(check);
  return result;
}

std::string check_text(const Answer& answer) {
  const Check& check = *answer.check;
  if (!check.failure.empty()) return "not checked by running the leading plans: " + check.failure;
  const Entry& chosen = chosen_of(answer);
  const std::string choice = !check.changed ? chosen.title + " stays"
                             : chosen.method != check.before
                                 ? chosen.title + " instead of " + check.before_title
                                 : chosen.title + " with other messages";
  const std::string other =
      check.passed_over.empty() ? "" : fmt::format(" ({} was not run)", check.passed_over);
  return fmt::format("checked {} plan{} by running {} for {}: {}; {}{}", check.plans.size(),
                     check.plans.size() == 1 ? "" : "s", check.plans.size() == 1 ? "it" : "them",
                     format_time(check.elapsed), factors_text(check), choice, other);
}

}  // namespace commtune::tuner
