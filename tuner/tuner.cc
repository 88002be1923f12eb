#include "tuner/tuner.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "perfmodel/base/error.h"
#include "perfmodel/base/normal.h"
#include "perfmodel/bound/bound.h"
#include "perfmodel/cost/prediction_limits.h"
#include "perfmodel/cost/stage_cost.h"
#include "perfmodel/cost/topology.h"
#include "tuner/best_plan.h"
#include "tuner/cast_answer.h"
#include "tuner/doubt.h"
#include "tuner/doubtful.h"
#include "tuner/factors.h"
#include "tuner/methods/method.h"
#include "tuner/reason.h"
#include "tuner/search/search.h"
#include "tuner/transport_job.h"

namespace commtune::tuner {

namespace {

constexpr const char* kJoint = "joint";

void require(bool holds, const std::string& field, const std::string& value, const std::string& rule) {
  if (!holds) throw Error(ErrorCode::kBadInput, field + " = " + value + ": " + rule);
}

int workers_of(const TuneOptions& options, const Cluster& cluster) {
  if (options.workers > 0) return options.workers;
  const int left = cluster.ranks() - options.limits.dedicated_servers;
  require(
      left >= 1, "dedicated_servers", std::to_string(options.limits.dedicated_servers),
      "must leave at least one of the cluster's " + std::to_string(cluster.ranks()) + " ranks as a worker");
  return left;
}

/// Remembers whether anybody was told that time is out: only then is something missing from the answer. Time
/// that has passed stays so, whatever a clock says later.
struct TimeLimit {
  explicit TimeLimit(const OutOfTime& asked) {
    if (asked) out_of_time = [this, &asked] { return passed = passed || asked(); };
  }
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;

  OutOfTime out_of_time;
  bool passed = false;
};

void rank_by_run(Entry& entry, Seconds& predicted, const PlanTime& run) {
  predicted = expected_after_run(predicted, run.iteration, run.half_width);
  entry.run_deviation = std::hypot(run.half_width / run.iteration / kNormal95, kBetweenRuns);
}

Entry entry_of(const Planning& job, PredictedPlan candidate, std::string title, const Trials& trials) {
  Entry entry;
  entry.digest = digest(candidate.plan);
  if (const PlanTime* run = trials.run_of(entry.digest))
    rank_by_run(entry, candidate.prediction.iteration, *run);
  entry.method = candidate.plan.method;
  entry.title = std::move(title);
  entry.prediction = candidate.prediction;
  entry.bound = job.option_of(candidate.plan.road)->bound;
  const double time = candidate.prediction.iteration.count();
  if (time > 0) {
    if (job.profile.batch > 0) entry.samples_per_second = job.workers * job.profile.batch / time;
    entry.speedup = job.workers * job.alone.count() / time;
  }
  entry.messages = candidate.plan.messages.size();
  entry.server_imbalance = server_imbalance(candidate.plan);
  entry.plan = std::move(candidate.plan);
  return entry;
}

/// Best first; of those that are as fast the simpler one.
void sort_ranking(std::vector<Entry>& ranking) {
  std::stable_sort(ranking.begin(), ranking.end(), [](const Entry& a, const Entry& b) {
    return std::tuple(a.prediction.iteration, effort_of(a)) <
           std::tuple(b.prediction.iteration, effort_of(b));
  });
}

/// Fills in what the bounds are with every cost at its lower limit.
void lower_to_limits(std::vector<RoadBound>& bounds, const Planning& job, const Cluster& cluster,
                     const OutOfTime& out_of_time) {
  const Cluster least = at_limits(cluster, Limit::kLower);
  const Workload work(job.profile, slowdown_of(least, job.workers));
  for (RoadBound& bound : bounds) {
    if (is_out(out_of_time)) return;
    const RoadCost cost = moved(road_cost(bound.road, least, job.workers), -kNormal90, 0);
    bound.bound_low = std::min(bound.bound, lower_bound(work, cost));
  }
}

bool has_low_bound(const RoadBound& bound) { return bound.bound_low.has_value(); }

/// Nothing where time ran out before each road had one: any of the others may be the lowest.
std::optional<Seconds> lowest_at_limits(const std::vector<RoadBound>& bounds) {
  if (bounds.empty() || !std::ranges::all_of(bounds, has_low_bound)) return std::nullopt;
  return std::ranges::min_element(bounds, {}, &RoadBound::bound_low)->bound_low;
}

void sort_bounds(std::vector<RoadBound>& bounds) { std::ranges::stable_sort(bounds, {}, &RoadBound::bound); }

/// Leaves out plans that were not run and are not predicted to be so much faster than all that were.
void keep_tried(const std::vector<Entry>& ranking, const Trials& trials, std::vector<std::size_t>& entries) {
  const auto was_run = [&](std::size_t i) { return trials.run_of(ranking[i].digest) != nullptr; };
  const auto time = [&](std::size_t i) { return ranking[i].prediction.iteration; };
  Seconds fastest = kNoLimit;
  for (const std::size_t i : entries) {
    if (was_run(i)) fastest = std::min(fastest, time(i));
  }
  std::erase_if(entries, [&](std::size_t i) {
    return !was_run(i) && fastest < kNoLimit && time(i) * (1 + trials.untried) >= fastest;
  });
}

/// What may be chosen: indices into the ranking.
std::vector<std::size_t> eligible_among(const std::vector<Entry>& ranking, const Trials& trials) {
  std::vector<std::size_t> all(ranking.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  std::vector<std::size_t> found;
  std::ranges::copy_if(all, std::back_inserter(found), [&](std::size_t i) {
    return std::ranges::find(trials.roads, road_of(ranking[i].plan)) != trials.roads.end();
  });
  if (found.empty()) found = std::move(all);
  if (trials.untried > 0) keep_tried(ranking, trials, found);
  return found;
}

/// decide() among some of the ranking.
Decision decide_among(const std::vector<Entry>& ranking, const std::vector<std::size_t>& entries) {
  if (entries.size() == ranking.size()) return decide(ranking);
  std::vector<Entry> eligible;
  eligible.reserve(entries.size());
  for (const std::size_t i : entries) eligible.push_back(ranking[i]);
  const Decision decision = decide(eligible);
  return {entries[decision.chosen], decision.clear};
}

/// A plan with the pace of the links that it was priced on, and by its transport's name, where the cluster
/// has several.
PredictedPlan labelled(PredictedPlan candidate, const Cluster& cluster, const std::string& transport) {
  candidate.plan.pace = link_rate(cluster);
  if (transport.empty()) return candidate;
  candidate.plan.transport = transport;
  candidate.plan.method = method_over(candidate.plan.method, transport);
  return candidate;
}

/// The method's plan that was run, where the new one is not expected to be faster by more than
/// Trials::untried.
PredictedPlan faster_of(PredictedPlan found, const TransportJob& over, const Trials& trials,
                        Simulator& simulator) {
  for (const PlanTime& run : trials.runs) {
    if (run.plan.method != found.plan.method || run.plan.transport != found.plan.transport) continue;
    const RoadOption* const option = over.job.option_of(run.plan.road);
    if (option == nullptr) continue;
    const Prediction prediction = simulator.run(run.plan, option->cost);
    const Seconds expected = expected_after_run(prediction.iteration, run.iteration, run.half_width);
    if (expected <= found.prediction.iteration * (1 + trials.untried)) found = {run.plan, prediction};
  }
  return found;
}

/// What every method, and the joint search, say over one transport.
void add_entries(Answer& answer, const TransportJob& over, const TuneOptions& options,
                 const OutOfTime& out_of_time) {
  const Planning& preferred = over.preferred();
  Simulator simulator(over.job.work);
  ExpectedOrder order(preferred, simulator);
  std::optional<Candidate> start;  // the fastest of those on preferred roads
  const auto add = [&](PredictedPlan candidate, std::string title) {
    if (!over.transport.empty()) title.append(" over ").append(over.transport);
    candidate = labelled(std::move(candidate), *over.cluster, over.transport);
    candidate = faster_of(std::move(candidate), over, options.trials, simulator);
    answer.ranking.push_back(entry_of(over.job, std::move(candidate), std::move(title), options.trials));
  };
  for (const Method& method : methods()) {
    std::optional<Candidate> candidate = best_of(method, preferred, simulator, out_of_time);
    if (candidate && (!start || order.is_faster(*candidate, *start))) start = *candidate;
    if (!candidate && over.narrowed) candidate = best_of(method, over.job, simulator, out_of_time);
    if (candidate) add(std::move(candidate->predicted), std::string(method.title));
  }
  if (!start || is_out(out_of_time)) return;
  SearchReport joint = joint_search(preferred, {std::move(start->predicted)},
                                    {options.gap_limit, options.max_events, out_of_time});
  joint.best.method = kJoint;
  add({std::move(joint.best), joint.prediction}, "Joint (commtune)");
}

/// Adds the bound of the fastest plan's road, where plans are not searched on it.
void add_bound_of(const Entry& fastest, std::vector<TransportJob>& jobs) {
  for (TransportJob& each : jobs) {
    if (each.transport != fastest.plan.transport) continue;
    const auto own = std::ranges::find(each.job.whole, fastest.plan.road, &RoadOption::road);
    if (own != each.job.whole.end())
      each.bounds.push_back({own->road, own->bound, own->cost.explanation, {}, each.transport});
  }
}

Seconds lowest_bound(const std::vector<TransportJob>& jobs) {
  Seconds lowest = jobs.front().bounds.front().bound;
  for (const TransportJob& each : jobs) {
    for (const RoadBound& bound : each.bounds) lowest = std::min(lowest, bound.bound);
  }
  return lowest;
}

std::vector<RoadBound> bounds_of_all(std::vector<TransportJob>& jobs) {
  std::vector<RoadBound> all = std::move(jobs.front().bounds);
  for (auto each = jobs.begin() + 1; each != jobs.end(); ++each)
    std::ranges::move(each->bounds, std::back_inserter(all));
  sort_bounds(all);
  return all;
}

std::vector<TransportView> views_of(const std::vector<TransportJob>& jobs) {
  std::vector<TransportView> views;
  views.reserve(jobs.size());
  for (const TransportJob& each : jobs) views.push_back(each.view());
  return views;
}

/// I = C / D of MODEL.md section 1: three passes' worth of two operations per multiply-add.
double intensity_of(const Profile& profile) {
  double macs = 0;
  for (const Layer& layer : profile.layers) macs += layer.macs_per_sample;
  const double parameters = static_cast<double>(profile.gradient_bytes().count) /
                            static_cast<double>(element_size(profile.type).count);
  return parameters > 0 ? 2 * 3 * macs / parameters : 0;
}

}  // namespace

std::string plan_digest(const Entry& entry) {
  return entry.digest.empty() ? digest(entry.plan) : entry.digest;
}

Effort effort_of(const Entry& entry) {
  const Method* method = find_method(entry.method);
  return method != nullptr ? method->effort : Effort::kReordered;
}

TransportRoad road_of(const CheckedPlan& plan) { return {plan.road, plan.transport}; }

void TuneOptions::check() const {
  require(workers >= 0, "workers", std::to_string(workers), "must be at least 1, or 0 for all ranks");
  require(limits.colocated_servers >= 0, "colocated_servers", std::to_string(limits.colocated_servers),
          "must not be negative");
  require(limits.dedicated_servers >= 0, "dedicated_servers", std::to_string(limits.dedicated_servers),
          "must not be negative");
  require(draws >= 0, "draws", std::to_string(draws), "must not be negative");
  for (const PlanTime& run : trials.runs) {
    require(run.iteration.count() > 0, "runs.iteration", format_time(run.iteration), "must be positive");
    require(run.half_width.count() >= 0, "runs.half_width", format_time(run.half_width),
            "must not be negative");
    require(run.late.count() >= 0, "runs.late", format_time(run.late), "must not be negative");
  }
  require(trials.untried >= 0, "untried", std::to_string(trials.untried), "must not be negative");
  SearchOptions{gap_limit, max_events}.check();
}

Answer tune(const Profile& profile, const Cluster& cluster, const TuneOptions& options) {
  options.check();
  if (options.wire != WireFormat::kAsIs) return cast_answer(profile, cluster, options);
  const int workers = workers_of(options, cluster);
  TimeLimit limit(options.out_of_time);
  std::vector<TransportJob> jobs = jobs_of(profile, cluster, workers, options, limit.out_of_time);
  const Planning& job = jobs.front().job;
  Answer answer;
  answer.model = profile.model;
  answer.cluster = cluster.name;
  answer.workers = workers;
  answer.batch = profile.batch;
  answer.compute = job.alone;
  answer.intensity = intensity_of(profile);
  for (const TransportJob& each : jobs) {
    if (!answer.ranking.empty() && is_out(limit.out_of_time)) break;
    add_entries(answer, each, options, limit.out_of_time);
  }
  if (answer.ranking.empty()) throw Error(ErrorCode::kTimeout, kNothingInTime);

  sort_ranking(answer.ranking);
  add_bound_of(answer.ranking.front(), jobs);
  answer.bound = lowest_bound(jobs);
  for (Entry& entry : answer.ranking) {
    if (answer.bound.count() > 0) entry.gap = entry.prediction.iteration / answer.bound - 1;
  }
  const std::vector<std::size_t> eligible = eligible_among(answer.ranking, options.trials);
  answer.chosen = eligible.front();
  const bool in_doubt = options.draws > 0 && workers > 1;
  if (in_doubt) {
    for (TransportJob& each : jobs) lower_to_limits(each.bounds, each.job, *each.cluster, limit.out_of_time);
  }
  answer.bounds = bounds_of_all(jobs);
  if (in_doubt) answer.bound_low = lowest_at_limits(answer.bounds);
  if (in_doubt &&
      judge_under_doubt(answer.ranking, views_of(jobs), options.draws, options.seed, limit.out_of_time)) {
    const Decision decision = decide_among(answer.ranking, eligible);
    answer.chosen = decision.chosen;
    Doubt& doubt = *answer.ranking[answer.chosen].doubt;
    doubt.high = doubt.high * (1 + doubt.optimism);
    answer.clear_winner = decision.clear;
  }
  answer.doubtful = doubtful_fits_behind(answer.ranking, cluster, workers);
  answer.reason = reason_for(answer, job);
  answer.complete = !limit.passed;
  return answer;
}

}  // namespace commtune::tuner
