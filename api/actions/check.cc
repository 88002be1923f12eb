#include "api/actions/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <utility>

#include "api/actions/run.h"
#include "api/actions/tune.h"
#include "api/view/sample_rows.h"
#include "perfmodel/road_json.h"
#include "tuner/check.h"

namespace commtune::api {
namespace {

using probes::ProbeSample;

constexpr int kWarmup = 1, kLeastIterations = 3, kMostIterations = 20;

/// Runs leading plans, one at a time.
class CheckRuns {
 public:
  CheckRuns(const Context& context, const TuneRequest& request, std::optional<RowId> fit)
      : request_(request),
        fit_(fit),
        begin_(std::chrono::steady_clock::now()),
        listener_(context.listener),
        context_{context.settings, context.environment, context.store, context.cancellation, {}} {
    context_.listener.note = listener_.note;
  }
  CheckRuns(const CheckRuns&) = delete;
  CheckRuns& operator=(const CheckRuns&) = delete;

  Seconds elapsed() const { return std::chrono::steady_clock::now() - begin_; }
  /// By digest of the plan: every iteration.
  const std::map<std::string, std::vector<double>>& iterations() const { return iterations_; }

  std::vector<Seconds> run(const tuner::Entry& entry, Seconds share) {
    const RowId id = keep_plan(context_.store, request_.profile, entry, fit_);
    RunRequest run;
    run.job = find_jobs(context_, {std::to_string(id), {}, {}}, {}).front();
    run.placing = request_.check->placing;
    run.placing.check();
    run.placing.hosts = first_ranks(run.placing.hosts, ranks_of(entry.plan));
    run.options.warmup = kWarmup;
    run.options.check_iterations = 0;  // the timed iterations' spot checks are enough for so short a run
    run.options.iterations = iterations_of_check(share, entry.prediction.iteration * slower_, launch_);
    run.strict = request_.strict;
    context_.listener.progress = [&](const Progressed& progress) { show(entry, progress); };
    const Seconds begin = elapsed();
    const RunOutcome done = run_job(context_, run);
    const std::vector<double>& seconds = done.report.iteration_seconds;
    learn(entry, done.report.median_seconds, elapsed() - begin, run.options.iterations);
    iterations_[digest(entry.plan)] = seconds;
    return {seconds.begin(), seconds.end()};
  }

 private:
  /// What the next run's length is computed with.
  void learn(const tuner::Entry& entry, double median, Seconds took, int iterations) {
    if (entry.prediction.iteration > Seconds{0})
      slower_ = std::max(slower_, Seconds{median} / entry.prediction.iteration);
    launch_ = std::max(Seconds{0}, took - Seconds{median} * (iterations + kWarmup));
  }

  void show(const tuner::Entry& entry, const Progressed& run) const {
    if (!listener_.progress) return;
    const Seconds budget = request_.check->budget;
    const Seconds left = std::max(Seconds{}, budget - elapsed());
    listener_.progress({fmt::format("checking {}: {}", entry.method, run.what), 1 - left / budget, left});
  }

  const TuneRequest& request_;
  const std::optional<RowId> fit_;
  const std::chrono::steady_clock::time_point begin_;
  const Listener listener_;
  Context context_;  ///< the caller's, with a listener of ours
  double slower_ = 1;
  Seconds launch_{};
  std::map<std::string, std::vector<double>> iterations_;
};

/// What plans that were run since a probe have told of a road, all together.
probes::PlanCosts known_costs(const std::vector<SampleRow>& rows, const Road& road, int workers) {
  probes::PlanCosts known;
  known.deviation = 1;
  for (const SampleRow& row : rows) {
    if (row.kind == probes::to_string(probes::Subject::kPlan) && row.road == road && row.workers == workers)
      known = from_row(row).costs;
  }
  return known;
}

/// A sample for each plan that told anything. Its factor is on what operations were measured to cost, so the
/// last one of a road holds all that earlier checks found.
std::vector<NewSample> samples_of(const tuner::Check& check, const CheckRuns& runs, const Profile& profile,
                                  const std::vector<SampleRow>& earlier) {
  std::vector<NewSample> samples;
  for (const tuner::CheckedPlan& plan : check.plans) {
    const auto found = std::ranges::find(check.factors, plan.road, &RoadFactor::road);
    if (found == check.factors.end()) continue;
    const probes::PlanCosts known = known_costs(earlier, plan.road, plan.workers);
    ProbeSample sample;
    sample.quantity.subject = probes::Subject::kPlan;
    sample.quantity.road = plan.road;
    sample.quantity.workers = plan.workers;
    sample.raw_seconds = runs.iterations().at(plan.digest);
    sample.sample = {profile.gradient_bytes(), plan.measured, plan.half_width,
                     static_cast<int>(sample.raw_seconds.size())};
    sample.costs = {plan.digest, plan.predicted, known.factor * found->factor,
                    std::min(known.deviation, found->deviation)};
    samples.push_back(to_row(sample));
  }
  return samples;
}

nlohmann::json checked_settings(const FitRow& before, const tuner::Check& check) {
  nlohmann::json settings = before.settings.is_object() ? before.settings : nlohmann::json::object();
  nlohmann::json roads = nlohmann::json::array();
  for (const RoadFactor& factor : check.factors)
    roads.push_back({{"road", commtune::to_json(factor.road)}, {"factor", factor.factor}});
  settings["checked"] = {{"fit", before.id}, {"roads", std::move(roads)}};
  return settings;
}

/// The new fit; nothing where another one has come while plans ran.
std::optional<RowId> keep_fit(Store& store, const Fitted& fitted, const tuner::CheckedAnswer& checked,
                              const CheckRuns& runs, const Profile& profile) {
  const tuner::Check& check = *checked.answer.check;
  std::optional<RowId> fit;
  store.atomically([&] {
    const std::optional<FitRow> before = store.current_fit(fitted.row->cluster);
    if (!before || before->id != *fitted.fit) return;
    const std::vector<SampleRow> earlier = store.all_samples(before->session);
    store.supplement_samples(before->session, samples_of(check, runs, profile, earlier));
    fit = store.add_fit({before->session, checked.cluster, checked_settings(*before, check)});
  });
  return fit;
}

}  // namespace

int iterations_of_check(Seconds share, Seconds iteration, Seconds launch) {
  const double fit = iteration > Seconds{0} ? (share - launch) / iteration - kWarmup : kMostIterations;
  return static_cast<int>(std::clamp<double>(fit, kLeastIterations, kMostIterations));
}

void check_outcome(const Context& context, const TuneRequest& request, const Fitted& fitted,
                   const std::function<tuner::Answer(const Cluster&, const std::vector<Road>&)>& plan,
                   TuneOutcome& outcome) {
  CheckRuns runs(context, request, fitted.fit);
  tuner::CheckOptions options;
  options.budget = request.check->budget;
  options.measure = [&](const tuner::Entry& entry, Seconds share) { return runs.run(entry, share); };
  options.clock = [&] { return runs.elapsed(); };
  options.plan = plan;
  tuner::CheckedAnswer checked = tuner::check(outcome.answer, request.profile, fitted.cluster, options);
  if (checked.answer.checked() && !checked.answer.check->factors.empty()) {
    outcome.fit = fitted.fit ? keep_fit(context.store, fitted, checked, runs, request.profile) : std::nullopt;
    if (!outcome.fit) outcome.refitted = std::move(checked.cluster);
  }
  outcome.answer = std::move(checked.answer);
}

}  // namespace commtune::api
