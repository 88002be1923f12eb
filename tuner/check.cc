#include "tuner/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "perfmodel/base/error.h"
#include "perfmodel/base/overloaded.h"
#include "perfmodel/fit/fit.h"
#include "tuner/planning.h"
#include "tuner/road_factors.h"
#include "tuner/verify.h"

namespace commtune::tuner {

namespace {

/// Roads that are run in a round, and rounds: they share the time that a check has, so that with more of them
/// each would be known from fewer iterations. A later round is for what the one before brought up: other
/// roads, a chosen plan that was not run itself, or plans that what is known of their road leaves in doubt.
constexpr std::size_t kMostRoads = 3;
constexpr int kMostRounds = 3;
/// Of the chosen plan's time: two runs of a plan differ by less in 95 of 100 cases.
constexpr double kNoticeable = 0.02;
/// Of the time that is left a round takes this part; the rest is for what only the new costs bring up.
/// The last round takes all.
constexpr double kPartOfRound = 2.0 / 3;

/// Whether a plan that tells nothing of its road's costs took another time than they say.
bool is_unexplained(const CheckedPlan& plan) {
  const double off = std::abs(plan.measured / plan.predicted - 1);
  return plan.hidden && off > std::max(plan.half_width / plan.predicted, kIndifferent);
}

bool is_late(const PlanTime& time) { return time.late.count() > 0; }

/// Measures plans until the time is spent.
class Measuring {
 public:
  explicit Measuring(const CheckOptions& options) : options_(options), begin_(options.clock()) {}

  Seconds elapsed() const { return options_.clock() - begin_; }
  bool is_spent() const { return elapsed() >= options_.budget; }
  const std::vector<CheckedPlan>& checked() const { return checked_; }
  const std::vector<Plan>& plans() const { return plans_; }

  std::vector<TransportRoad> roads() const {
    std::vector<TransportRoad> roads;
    roads.reserve(checked_.size());
    for (const CheckedPlan& plan : checked_) roads.push_back(road_of(plan));
    return roads;
  }
  /// Its road, by this plan or another one.
  bool has_measured_road_of(const Plan& plan) const {
    return std::ranges::any_of(checked_,
                               [&](const CheckedPlan& each) { return road_of(each) == road_of(plan); });
  }
  bool has_run(const Plan& plan) const {
    return std::ranges::find(checked_, digest(plan), &CheckedPlan::digest) != checked_.end();
  }
  /// Plans that were not run, and by the doubt that is left may be noticeably faster than the chosen one: on
  /// a road of which only another plan was.
  std::vector<std::size_t> may_be_faster(const Answer& answer) const {
    const Seconds enough = answer.ranking.at(answer.chosen).prediction.iteration * (1 - kNoticeable);
    std::vector<std::size_t> entries = plans_to_verify(answer, std::numeric_limits<int>::max());
    std::erase_if(entries, [&](std::size_t i) {
      const Entry& entry = answer.ranking[i];
      return i == answer.chosen || has_run(entry.plan) || !entry.doubt || entry.doubt->low >= enough;
    });
    return entries;
  }
  bool any_unexplained() const { return std::ranges::any_of(checked_, is_unexplained); }
  /// How much longer than predicted by then the runs of the last round took on average, as a part; nothing
  /// where nobody would notice.
  double surprise() const {
    double sum = 0;
    for (const double each : surprises_) sum += each;
    const double mean = std::expm1(sum / static_cast<double>(std::max<std::size_t>(1, surprises_.size())));
    return mean > kNoticeable ? mean : 0;
  }
  /// cluster  refitted()
  std::vector<PlanTime> times(const Profile& profile, const Cluster& cluster) const {
    std::vector<PlanTime> times;
    for (std::size_t i = 0; i < checked_.size(); ++i) {
      const CheckedPlan& plan = checked_[i];
      times.push_back({plans_[i], plan.digest, plan.measured, plan.half_width,
                       late_by(plan, plans_[i], profile, cluster)});
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
      if (i == answer.chosen ? !has_run(entry.plan) : !has_measured_road_of(entry.plan))
        turns.push_back(&entry);
    }
    for (const std::size_t i : may_be_faster(answer)) {
      const Entry& entry = answer.ranking[i];
      const bool listed = std::ranges::find(turns, &entry) != turns.end();
      if (turns.size() < kMostRoads && !listed && has_measured_road_of(entry.plan)) turns.push_back(&entry);
    }
    const Seconds left = options_.budget - elapsed();
    const Seconds share =
        left * (last ? 1 : kPartOfRound) / static_cast<double>(std::max<std::size_t>(1, turns.size()));
    const std::size_t before = checked_.size();
    if (!turns.empty()) surprises_.clear();
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
    surprises_.push_back(std::log(checked.measured / entry.prediction.iteration));
    find_factor(checked, entry.plan, profile, cluster);
    checked_.push_back(std::move(checked));
    plans_.push_back(entry.plan);
  }

  const CheckOptions& options_;
  const Seconds begin_;
  std::vector<CheckedPlan> checked_;
  std::vector<Plan> plans_;
  std::vector<double> surprises_;  ///< of the last round's runs: logarithms of measured over predicted
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

bool is_as_probed(const CostFactor& factor) { return factor.startup == 1 && factor.rate == 1; }
bool is_as_probed(const RoadFactor& factor) {
  return is_as_probed(factor.alone) && is_as_probed(factor.streamed);
}

/// "1.31 times a start-up and 1.12 times a byte"
std::string times_text(const CostFactor& factor) {
  return fmt::format("{:.2f} times a start-up and {:.2f} times a byte", factor.startup, factor.rate);
}

/// "all-to-all ring costs alone 1.02 times a start-up and 1.00 times a byte, in streams 1.31 times a start-up
/// and 1.12 times a byte what the probe said"
std::string factors_text(const Check& check) {
  if (std::ranges::all_of(check.factors, [](const RoadFactor& each) { return is_as_probed(each); }))
    return "their roads cost what the probe said";
  std::string text;
  for (const RoadFactor& each : check.factors) {
    if (is_as_probed(each)) continue;
    const std::string alone = times_text(each.alone), streamed = times_text(each.streamed);
    text += fmt::format("{}{}{} {} {}", text.empty() ? "" : ", ", describe(each.road),
                        each.transport.empty() ? "" : " over " + each.transport,
                        is_one(each.road) ? "costs" : "cost",
                        alone == streamed ? alone : fmt::format("alone {}, in streams {}", alone, streamed));
  }
  return text + " what the probe said";
}

/// What is said of the roads' costs, and of plans that those do not explain.
std::string findings_text(const Check& check) {
  const std::string unexplained = unexplained_text(check);
  if (!check.factors.empty()) return factors_text(check) + (unexplained.empty() ? "" : ", ") + unexplained;
  return unexplained.empty() ? "they hide all that they send, and tell nothing of its costs" : unexplained;
}

/// The last word: a plan on a road that was run, and where the last runs still took noticeably longer than
/// predicted one that was run itself, unless another is predicted to be faster by more than that.
void settle(CheckedAnswer& result, Check& check, const Measuring& measuring, Trials trials,
            const CheckOptions& options) {
  const Entry untried = chosen_of(result.answer);
  trials.untried = measuring.surprise();
  const bool is_measured = measuring.has_measured_road_of(untried.plan);
  if (is_measured && (measuring.has_run(untried.plan) || trials.untried == 0)) return;
  if (!is_measured) trials.roads = measuring.roads();
  result.answer = options.plan(result.cluster, trials);
  if (digest(chosen_of(result.answer).plan) != digest(untried.plan))
    check.passed_over = fmt::format("{} over {}", untried.title, describe(untried.plan.road));
}

}  // namespace

void CheckOptions::check() const {
  if (!(budget.count() > 0))
    throw Error(ErrorCode::kBadInput, "check: budget = " + format_time(budget) + ": must be positive");
}

std::vector<std::size_t> leading_plans(const Answer& answer) {
  const std::vector<std::size_t> overlapping = plans_to_verify(answer, std::numeric_limits<int>::max());
  std::vector<std::size_t> leading;
  const auto plan = [&](std::size_t i) -> const Plan& { return answer.ranking[i].plan; };
  const auto add = [&](const auto& is_known) {
    for (const std::size_t i : overlapping) {
      const bool known = std::ranges::any_of(leading, [&](std::size_t other) { return is_known(i, other); });
      if (!known && leading.size() < kMostRoads) leading.push_back(i);
    }
  };
  add([&](std::size_t i, std::size_t j) {
    return architecture_of(plan(i).road) == architecture_of(plan(j).road);
  });
  add([&](std::size_t i, std::size_t j) { return road_of(plan(i)) == road_of(plan(j)); });
  return leading;
}

CheckedAnswer check(const Answer& unchecked, const Profile& profile, const Cluster& cluster,
                    const CheckOptions& options) {
  options.check();
  CheckedAnswer result{unchecked, cluster, {}};
  Measuring measuring(options);
  Check check;
  check.before = chosen_of(unchecked).method;
  check.before_title = chosen_of(unchecked).title;
  Trials trials;
  try {
    for (int round = 1; round <= kMostRounds; ++round) {
      if (!measuring.measure_leading(result.answer, profile, cluster, round == kMostRounds)) break;
      check.factors = road_factors(measuring.checked(), measuring.plans(), profile, cluster);
      result.cluster = refitted(cluster, check.factors, unchecked.workers);
      trials.runs = measuring.times(profile, result.cluster);
      if (check.factors.empty() && !measuring.any_unexplained() && std::ranges::none_of(trials.runs, is_late))
        break;
      result.answer = options.plan(result.cluster, trials);
      if (measuring.is_spent()) break;
      if (measuring.has_run(chosen_of(result.answer).plan) && measuring.may_be_faster(result.answer).empty())
        break;
    }
    settle(result, check, measuring, trials, options);
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
                     format_time(check.elapsed), findings_text(check), choice, other);
}

}  // namespace commtune::tuner
