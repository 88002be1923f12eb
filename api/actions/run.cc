#include "api/actions/run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "api/question/fit_marks.h"
#include "api/question/models.h"
#include "api/question/plan_lookup.h"
#include "api/question/plan_view.h"
#include "api/version.h"
#include "api/view/predicted_trace.h"
#include "executor/transport/registry/kinds.h"
#include "perfmodel/base/error.h"
#include "perfmodel/base/json_reader.h"
#include "perfmodel/fit/fit.h"
#include "perfmodel/shipped_profiles.h"
#include "probes/host/fact_differences.h"
#include "store/owner.h"

namespace commtune::api {
namespace {

/// What a long message reaches between two hosts.
double link_rate(const Cluster& cluster) {
  const auto link = cluster.links.find(LinkClass::kInterHost);
  if (link == cluster.links.end() || link->second.alone.curve.empty()) return 0;
  const double beta = link->second.alone.curve.pieces().back().beta.value;
  return beta > 0 ? 1 / beta : 0;
}

PlannedJob job_of_row(const Store& store, const PlanRow& row) {
  PlannedJob job{row.plan,    profile_of(store, row),
                 row.id,      row.cluster_name,
                 row.cluster, row.predicted,
                 row.bound,   {},
                 0,           {}};
  if (row.cluster) {
    if (const auto cluster = store.find_cluster(*row.cluster))
      job.over = probed_over(cluster->transport, cluster->facts);
  }
  if (const auto fit = row.fit ? store.find_fit(*row.fit) : std::nullopt) {
    job.link_rate = link_rate(fit->snapshot);
    job.fitted_facts = fit->snapshot.facts;
  }
  return job;
}

/// The profile that a plan file was made for, or one that was timed again: the same layout.
Profile profile_for(const Context& context, const Plan& plan, const PlanName& name) {
  const Store& store = context.store;
  if (!name.profile.empty()) return find_profile(store, name.profile);
  if (const auto stored = store.find_profile(plan.profile)) return stored->profile;
  const auto shipped = shipped_profile(plan.model);
  if (shipped && digest(*shipped) == plan.profile) return *shipped;
  const auto timed_again = [&](const Profile& profile) {
    context.note(
        fmt::format("{}: the profile that it was made for (digest {}) is not in the database; it runs "
                    "with the times of another one of the same layout (digest {})",
                    name.text, plan.profile, digest(profile)));
    return profile;
  };
  if (const auto stored = store.find_profile_of_layout(plan.layout)) return timed_again(stored->profile);
  if (shipped && layout_digest(*shipped) == plan.layout) return timed_again(*shipped);
  throw Error(ErrorCode::kNotFound,
              fmt::format("{}: its profile ({}, digest {}) is not in the database; name it with --model",
                          name.text, plan.model, plan.profile));
}

/// What a plan of before there were layouts carries, if the profile that it was made for is known.
std::string layout_of(const Store& store, const Plan& plan) {
  if (const auto stored = store.find_profile(plan.profile)) return stored->layout;
  const auto shipped = shipped_profile(plan.model);
  return shipped && digest(*shipped) == plan.profile ? layout_digest(*shipped) : std::string();
}

/// Lets a plan of before there were layouts run with the times of another profile. It is another plan then,
/// with a digest of its own.
void give_layout(const Store& store, Plan& plan, const Profile& profile) {
  if (plan.layout.empty() && plan.profile != digest(profile)) plan.layout = layout_of(store, plan);
}

/// What it will take where the fit was made, if that can be said.
void predict(const Context& context, const FitRow& fit, PlannedJob& job) {
  try {
    const PredictedIteration found = predicted_iteration(job.plan, job.profile, fit.snapshot);
    job.predicted = found.prediction.iteration;
    job.bound = found.bound;
    job.cluster = fit.cluster_name;
    job.cluster_id = fit.cluster;
    job.over = probed_over(fit.snapshot.transport, fit.snapshot.facts);
    job.link_rate = link_rate(fit.snapshot);
    job.fitted_facts = fit.snapshot.facts;
  } catch (const Error& error) {
    context.note(fmt::format("no prediction: {}", error.what()));
  }
}

/// Keeps a job whose plan is not in the store like this.
void keep(Context& context, const std::optional<FitRow>& fit, nlohmann::json origin, PlannedJob& job) {
  context.store.atomically([&] {
    NewPlan row{job.plan, context.store.put_profile(job.profile), {}, std::move(origin), job.predicted, {},
                job.bound};
    if (fit && job.cluster_id) row.fit = fit->id;
    job.plan_id = context.store.add_plan(row);
  });
}

/// Makes a plan again that was not stored with its ranking, and stores it.
PlanRow store_again(Store& store, const PlanRow& row, const std::string& method) {
  const PlanView view = view_plan(store, row, method);
  NewPlan again{view.plan, row.profile, row.fit, {{"chosen", false}}, {}, {}, {}};
  if (view.priced) {
    const PredictedIteration found = predicted_iteration(view.plan, view.profile, view.cluster);
    again.predicted = found.prediction.iteration;
    again.bound = found.bound;
  }
  return plan_with_id(store, store.add_plan(again));
}

/// A stored plan with the times of another profile.
PlannedJob job_with_profile(Context& context, const PlanRow& row, const std::string& model) {
  PlannedJob job = job_of_row(context.store, row);
  Profile profile = find_profile(context.store, model);
  if (digest(profile) == digest(job.profile)) return job;
  give_layout(context.store, job.plan, profile);
  try {
    check(job.plan, profile);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("plan {} with model {}: {}", row.id, model, error.what()));
  }
  job.profile = std::move(profile);
  job.predicted = job.bound = Seconds{};
  const auto fit = row.fit ? context.store.find_fit(*row.fit) : std::nullopt;
  if (fit) predict(context, *fit, job);
  keep(context, fit, {{"plan", row.id}}, job);
  return job;
}

PlannedJob job_of_file(Context& context, const PlanName& name) {
  const nlohmann::json document = read_json_file(name.text);
  PlannedJob job;
  try {
    job.plan = plan_from_json(document);
    job.profile = profile_for(context, job.plan, name);
    give_layout(context.store, job.plan, job.profile);
    check(job.plan, job.profile);
  } catch (const Error& error) {
    const std::string what = error.what();
    throw Error(error.code(), what.starts_with(name.text) ? what : fmt::format("{}: {}", name.text, what));
  }
  const auto fit = context.store.current_fit(name.cluster);
  if (fit) predict(context, *fit, job);
  keep(context, fit, {{"file", name.text}}, job);
  return job;
}

void check_ranks(const RunRequest& request) {
  const int offered = known_ranks(request.placing.hosts);
  const int wanted = ranks_of(request.job.plan);
  if (offered == 0 || offered == wanted) return;
  throw Error(
      ErrorCode::kBadInput,
      fmt::format(
          "plan {} is for {} ranks, the hosts offer {}: name hosts with {} slots in all, or tune again "
          "with --workers",
          digest(request.job.plan), wanted, offered, wanted));
}

/// A prediction beside the trace, where the plan was made from a fit.
void add_prediction(Context& context, const RunRequest& request) {
  const std::string& folder = request.options.trace_directory;
  const auto plan = context.store.find_plan(request.job.plan_id);
  if (folder.empty() || !plan || !plan->fit) return;
  try {
    const auto fit = context.store.find_fit(*plan->fit);
    if (fit) add_predicted_trace(folder, request.job.plan, request.job.profile, fit->snapshot);
  } catch (const Error& error) {
    context.note(fmt::format("no prediction in the trace: {}", error.what()));
  }
}

/// Bytes per second that a connection may send at; 0: no limit.
double pace_of(const RunRequest& request) {
  const TransportKind* kind = find_transport(request.placing.network);
  return request.paced && kind != nullptr && kind->takes_pace ? request.job.link_rate : 0;
}

NewRun new_run(const RunRequest& request, const Context& context) {
  NewRun run;
  run.plan = request.job.plan_id;
  run.cluster = request.job.cluster_id;
  run.hosts = request.placing.hosts.hosts;
  // Slots that only the host knows are stored as one until it is known better.
  for (Host& host : run.hosts) host.slots = std::max(1, host.slots);
  run.settings = settings_of(request.options);
  run.settings["workload"] = kReplay;
  run.settings["network"] = request.placing.network;
  run.settings["pace_bytes_per_second"] = pace_of(request);
  run.settings["transport"] = transport_settings(context, request.placing);
  run.versions["commtune"] = kVersion;
  run.owner = this_process();
  return run;
}

probes::Facts facts_from_json(const nlohmann::json& value) {
  const JsonPlace place(value);
  const JsonPlace named = place["facts"];
  probes::Facts facts;
  for (const auto& [name, fact] : named.object().items()) facts[name] = named[name].text();
  return facts;
}

/// What a run has said so far.
class RunListening {
 public:
  RunListening(Context& context, const RunRequest& request) : context_(context), request_(request) {}

  void hear(const LaunchReport& report) {
    if (const auto* progress = std::get_if<Progressed>(&report)) context_.progress(*progress);
    const auto* found = std::get_if<Found>(&report);
    if (found != nullptr && found->kind == "iteration")
      iterations_.push_back(found->value.at("seconds").get<double>());
    if (found != nullptr && found->kind == "facts") compare(facts_from_json(found->value));
  }

  const std::vector<double>& iterations() const { return iterations_; }
  const std::vector<std::string>& differences() const { return differences_; }

 private:
  /// Before the first iteration. A run's own settings say nothing about the cluster, so they are compared and
  /// not kept.
  void compare(probes::Facts facts) {
    const probes::Facts& fitted = request_.job.fitted_facts;
    if (fitted.empty()) return;
    if (request_.job.cluster_id)
      context_.store.see_facts(*request_.job.cluster_id, probes::of_known_hosts(facts, fitted));
    for (const auto& [name, value] : transport_settings(context_, request_.placing))
      facts["setting." + name] = value;
    differences_ = probes::fact_differences(fitted, facts);
    if (request_.strict) refuse_differences(differences_);
    for (const std::string& difference : differences_)
      context_.note(fmt::format("the prediction rests on a fit made under other conditions: {}", difference));
  }

  Context& context_;
  const RunRequest& request_;
  std::vector<double> iterations_;
  std::vector<std::string> differences_;
};

}  // namespace

RunResult run_result(WorkState state, std::vector<double> seconds, std::string error) {
  RunResult result;
  result.state = state;
  result.error = std::move(error);
  result.iteration_seconds = seconds;
  if (!seconds.empty()) {
    const MedianInterval interval = median_interval(seconds);
    result.median = Seconds{interval.median};
    result.low = Seconds{interval.low};
    result.high = Seconds{interval.high};
  }
  return result;
}

std::optional<double> RunOutcome::error() const {
  if (predicted.count() <= 0 || report.median_seconds <= 0) return {};
  return predicted.count() / report.median_seconds - 1;
}

std::vector<PlannedJob> find_jobs(Context& context, const PlanName& name,
                                  const std::vector<std::string>& methods) {
  if (names_file(name.text)) {
    if (!methods.empty())
      throw Error(ErrorCode::kBadInput,
                  fmt::format("--method {}: a plan file has one method's plan only; name a "
                              "stored plan",
                              methods.front()));
    return {job_of_file(context, name)};
  }
  const PlanRow row = find_stored_plan(context.store, name.text);
  const auto job_of = [&](const PlanRow& each) {
    return name.profile.empty() ? job_of_row(context.store, each)
                                : job_with_profile(context, each, name.profile);
  };
  if (methods.empty()) return {job_of(row)};
  std::vector<RankedMethod> ranked;
  const auto add = [&ranked](const RankedMethod& method) {
    if (std::ranges::find(ranked, method.method, &RankedMethod::method) == ranked.end())
      ranked.push_back(method);
  };
  for (const std::string& method : methods) {
    if (method == "all") {
      for (const RankedMethod& each : ranking_of(row)) add(each);
    } else {
      add(method_of(row, method));
    }
  }
  std::vector<PlannedJob> jobs;
  jobs.reserve(ranked.size());
  for (const RankedMethod& method : ranked)
    jobs.push_back(job_of(method.plan ? plan_with_id(context.store, *method.plan)
                                      : store_again(context.store, row, method.method)));
  return jobs;
}

RunOutcome run_job(Context& context, const RunRequest& request) {
  request.options.check();
  request.placing.check();
  check_ranks(request);
  say_notes(context, request.placing.hosts);
  RunOutcome outcome;
  outcome.predicted = request.job.predicted;
  const Order order = RunOrder{request.placing.network, request.job.plan, request.job.profile,
                               request.options,         pace_of(request), request.placing.subnet};
  outcome.run = context.store.start_run(new_run(request, context));
  RunListening listening(context, request);
  try {
    const nlohmann::json result = launch(
        to_json(order), launch_options(context, request.placing, ranks_of(request.job.plan)),
        [&](const LaunchReport& report) { listening.hear(report); }, context.cancellation);
    outcome.report = run_report_from_json(result.at("report"));
  } catch (const std::exception& error) {
    const auto* ours = dynamic_cast<const Error*>(&error);
    const bool interrupted = ours != nullptr && ours->code() == ErrorCode::kInterrupted;
    RunResult failed = run_result(interrupted ? WorkState::kInterrupted : WorkState::kFailed,
                                  listening.iterations(), error.what());
    failed.differences = listening.differences();
    context.store.finish_run(outcome.run, failed);
    throw;
  }
  outcome.differences = listening.differences();
  RunResult result = run_result(WorkState::kComplete, outcome.report.iteration_seconds, {});
  result.differences = outcome.differences;
  result.trace_path = request.options.trace_directory;
  result.messages = commtune::to_json(outcome.report).at("messages");
  add_prediction(context, request);
  context.store.finish_run(outcome.run, result);
  return outcome;
}

nlohmann::json to_json(const RunOutcome& outcome) {
  nlohmann::json out{
      {"run", outcome.run}, {"workload", kReplay}, {"report", commtune::to_json(outcome.report)}};
  if (outcome.predicted.count() > 0) out["predicted_seconds"] = outcome.predicted.count();
  if (const auto error = outcome.error()) out["prediction_error"] = *error;
  out["differences"] = outcome.differences;
  return out;
}

}  // namespace commtune::api
