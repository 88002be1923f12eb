#include "api/actions/check.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "api/actions/plan_runs.h"
#include "api/actions/tune.h"
#include "api/view/sample_rows.h"
#include "perfmodel/road_json.h"
#include "tuner/check.h"
#include "tuner/road_factors.h"

namespace commtune::api {
namespace {

using probes::ProbeSample;

constexpr int kWarmupOfCheck = 1;

/// Runs leading plans, each for about its share of the time.
class CheckRuns {
 public:
  CheckRuns(const Context& context, const Placing& placing, RunSession& session, const TuneOutcome& outcome)
      : store_(context.store),
        profile_(outcome.made.profile),
        fit_(outcome.fit),
        fits_(outcome.fits),
        runs_(
            context, session,
            {placing, outcome.question.check.value(), outcome.question.strict, "checking", kWarmupOfCheck}) {}

  Seconds elapsed() const { return runs_.elapsed(); }
  /// By digest of the plan: every iteration.
  const std::map<std::string, std::vector<double>>& iterations() const { return iterations_; }

  std::vector<Seconds> run(const tuner::Entry& entry, Seconds share) {
    const RowId id = keep_plan(store_, profile_, entry, fit_behind(entry.plan, fit_, fits_));
    const int iterations = iterations_of_check(share, entry.prediction.iteration * slower_, aside_);
    const PlanRuns::Ran ran = runs_.run(id, iterations);
    const RunReport& report = ran.outcome.report;
    learn(entry, Seconds{report.median_seconds}, ran.took, iterations);
    iterations_[digest(entry.plan)] = report.iteration_seconds;
    return {report.iteration_seconds.begin(), report.iteration_seconds.end()};
  }

 private:
  /// What the next run's length is computed with.
  void learn(const tuner::Entry& entry, Seconds median, Seconds took, int iterations) {
    if (entry.prediction.iteration > Seconds{0})
      slower_ = std::max(slower_, median / entry.prediction.iteration);
    aside_ = std::max(Seconds{0}, took - median * (iterations + kWarmupOfCheck));
  }

  Store& store_;
  const Profile& profile_;
  const std::optional<RowId> fit_;
  const FitIds fits_;
  PlanRuns runs_;
  double slower_ = 1;
  Seconds aside_{};
  std::map<std::string, std::vector<double>> iterations_;
};

/// What plans that were run since a probe have told of a road, all together.
probes::PlanCosts known_costs(const std::vector<SampleRow>& rows, const Road& road, int workers) {
  probes::PlanCosts known;
  for (const SampleRow& row : rows) {
    if (row.kind == probes::to_string(probes::Subject::kPlan) && row.road == road && row.workers == workers)
      known = from_row(row).costs;
  }
  return known;
}

/// What is known once costs that were off by one factor have turned out to be off by another one still.
CostFactor after(const CostFactor& known, const CostFactor& found) {
  return {known.startup * found.startup, known.rate * found.rate, found.deviation};
}

/// A sample for each plan that told anything. Its factor is on what operations were measured to cost, so the
/// last one of a road holds all that earlier checks found.
///
/// transport  of the plans; empty where the cluster has one
std::vector<NewSample> samples_of(const tuner::Check& check, const std::string& transport,
                                  const CheckRuns& runs, const Profile& profile,
                                  const std::vector<SampleRow>& earlier) {
  std::vector<NewSample> samples;
  for (const tuner::CheckedPlan& plan : check.plans) {
    const RoadFactor* const found = tuner::factor_of(check.factors, road_of(plan));
    if (found == nullptr || plan.transport != transport) continue;
    const probes::PlanCosts known = known_costs(earlier, plan.road, plan.workers);
    ProbeSample sample;
    sample.quantity.subject = probes::Subject::kPlan;
    sample.quantity.road = plan.road;
    sample.quantity.workers = plan.workers;
    sample.raw_seconds = runs.iterations().at(plan.digest);
    sample.sample = {profile.gradient_bytes(), plan.measured, plan.half_width,
                     static_cast<int>(sample.raw_seconds.size())};
    sample.costs = {plan.digest, plan.predicted, after(known.alone, found->alone),
                    after(known.streamed, found->streamed)};
    samples.push_back(to_row(sample));
  }
  return samples;
}

nlohmann::json checked_settings(const FitRow& before, const std::string& transport,
                                const tuner::Check& check) {
  nlohmann::json settings = before.settings.is_object() ? before.settings : nlohmann::json::object();
  nlohmann::json roads = nlohmann::json::array();
  for (const RoadFactor& factor : check.factors) {
    if (factor.transport != transport) continue;
    nlohmann::json& road = roads.emplace_back(probes::to_json(factor.streamed));
    road["road"] = commtune::to_json(factor.road);
    road["alone"] = probes::to_json(factor.alone);
  }
  settings["checked"] = {{"fit", before.id}, {"roads", std::move(roads)}};
  return settings;
}

bool tells_of(const tuner::Check& check, const std::string& transport) {
  return std::ranges::find(check.factors, transport, &RoadFactor::transport) != check.factors.end();
}

/// The cluster without its other transports.
Cluster alone(Cluster cluster) {
  cluster.others.clear();
  return cluster;
}

/// The new fit of a transport (empty where the cluster has one); nothing where another one has come while
/// plans ran.
std::optional<RowId> keep_fit(Store& store, RowId fit, const std::string& transport,
                              const tuner::CheckedAnswer& checked, const CheckRuns& runs,
                              const Profile& profile) {
  const tuner::Check& check = *checked.answer.check;
  const std::optional<FitRow> row = store.find_fit(fit);
  std::optional<RowId> corrected;
  store.atomically([&] {
    const std::optional<FitRow> before = row ? store.current_fit(row->cluster) : std::nullopt;
    if (!before || before->id != fit) return;
    const std::vector<SampleRow> earlier = store.all_samples(before->session);
    store.supplement_samples(before->session, samples_of(check, transport, runs, profile, earlier));
    corrected = store.add_fit({before->session, alone(over_transport(checked.cluster, transport)),
                               checked_settings(*before, transport, check)});
  });
  return corrected;
}

/// The new fits of the transports that runs told of. An answer whose costs are no fits any more rests on
/// none.
void keep_fits(Store& store, const tuner::CheckedAnswer& checked, const CheckRuns& runs,
               TuneOutcome& outcome) {
  const tuner::Check& check = *checked.answer.check;
  const Profile& profile = outcome.made.profile;
  if (outcome.fits.empty()) {
    outcome.fit = keep_fit(store, *outcome.fit, "", checked, runs, profile);
    return;
  }
  const RowId own = *outcome.fit;
  for (auto& [transport, fit] : outcome.fits) {
    if (!tells_of(check, transport)) continue;
    const std::optional<RowId> corrected = keep_fit(store, fit, transport, checked, runs, profile);
    if (!corrected) {
      outcome.fit.reset();
      outcome.fits.clear();
      return;
    }
    if (fit == own) outcome.fit = corrected;
    fit = *corrected;
  }
}

}  // namespace

int iterations_of_check(Seconds share, Seconds iteration, Seconds aside) {
  return iterations_within(share - aside, iteration, kWarmupOfCheck);
}

void check_outcome(const Context& context, const Placing& placing, RunSession& session,
                   const decltype(tuner::CheckOptions::plan)& plan, TuneOutcome& outcome) {
  const Profile& profile = outcome.made.profile;
  CheckRuns runs(context, placing, session, outcome);
  tuner::CheckOptions options;
  options.budget = outcome.question.check.value();
  options.measure = [&](const tuner::Entry& entry, Seconds share) { return runs.run(entry, share); };
  options.clock = [&] { return runs.elapsed(); };
  options.plan = plan;
  tuner::CheckedAnswer checked = tuner::check(outcome.answer, profile, outcome.made.cluster, options);
  if (checked.answer.checked() && !checked.answer.check->factors.empty()) {
    if (outcome.fit) keep_fits(context.store, checked, runs, outcome);
    outcome.made.cluster = std::move(checked.cluster);
  }
  outcome.answer = std::move(checked.answer);
}

}  // namespace commtune::api
