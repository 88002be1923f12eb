#include "api/actions/run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <set>

#include "api/actions/run_record.h"
#include "api/error_status.h"
#include "api/question/fit_marks.h"
#include "api/question/fitted.h"
#include "api/question/models.h"
#include "api/question/plan_lookup.h"
#include "api/question/plan_view.h"
#include "executor/base/random_digits.h"
#include "executor/transport/registry/kinds.h"
#include "perfmodel/base/error.h"
#include "perfmodel/base/json_reader.h"
#include "perfmodel/fit/fit.h"
#include "perfmodel/shipped_profiles.h"

namespace commtune::api {
namespace {

/// A plan's own wish goes before what its cluster was probed over.
void choose_transport(PlannedJob& job) {
  const std::string& wanted = job.plan.transport;
  if (!wanted.empty() && job.over.network != wanted) job.over = {wanted, {}};
}

/// What the fit behind a plan says of how it runs.
void know_fit(PlannedJob& job, const Cluster& fitted) {
  job.link_rate = link_rate(fitted);
  job.fitted_facts = fitted.facts;
  job.traits = fitted.traits;
  job.device = fitted.device;
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
    know_fit(job, fit->snapshot);
  }
  choose_transport(job);
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
    know_fit(job, fit.snapshot);
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
  const auto fit = fit_for_plan(context.store, name.cluster, job.plan);
  if (fit) predict(context, *fit, job);
  choose_transport(job);
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

void check_chunk(const RunRequest& request) {
  const Bytes wanted = request.options.chunk, probed = request.job.traits.chunk;
  if (wanted.count == 0 || wanted == probed || request.job.cluster.empty()) return;
  throw Error(
      ErrorCode::kBadInput,
      fmt::format("--chunk {}: cluster {} was probed with transfers of up to {}{}, for which the plan is "
                  "priced; leave it out, or probe again with --chunk",
                  format_size(wanted), request.job.cluster, format_size(probed),
                  request.job.traits.assumed ? " (assumed)" : ""));
}

/// Why a plan's transport cannot be used, with what of its ranking goes over another one that this program
/// has.
Error with_next_plan(const Store& store, const RunRequest& request, const Error& error) {
  const std::string& network = request.placing.network;
  if (error.code() != ErrorCode::kUnavailable || !tells_of_transport(error.what(), network)) return error;
  const auto chosen = chosen_of_ranking(store, request.job.plan_id);
  std::optional<RankedMethod> next;
  if (chosen) next = next_over_another(ranking_of(*chosen), network);
  return {error.code(),
          next ? fmt::format("{}; the next plan of its ranking goes over {}: tune run {} --method {}",
                             error.what(), next->transport, chosen->id, next->method)
               : fmt::format("{}; no plan of its ranking goes over another transport: probe the cluster "
                             "with --transport auto, or run it with --network",
                             error.what())};
}

/// Timed iterations of one turn among others: enough that the warm-up before them costs little, few enough
/// that plans see the same minutes.
constexpr int kIterationsOfTurn = 5;

/// Plans that run in one session, or in several where one of them fails in the middle.
class RunGroup {
 public:
  /// requests, outcomes  outlive this; `together` are this group's places in both
  RunGroup(Context& context, const std::vector<RunRequest>& requests, std::vector<std::size_t> together,
           std::vector<RunOutcome>& outcomes)
      : context_(context), requests_(requests), outcomes_(outcomes), left_(std::move(together)) {
    records_.resize(requests.size());
  }

  void run() {
    leave_out_what_has_no_room();
    if (left_.empty()) return;
    say_notes(context_, requests_[left_.front()].placing.hosts);
    const std::string group = left_.size() > 1 ? random_digits().substr(0, 16) : std::string();
    for (const std::size_t i : left_)
      records_[i] = std::make_unique<RunRecord>(context_, requests_[i], group);
    while (!left_.empty()) run_session();
  }

 private:
  const RunRequest& widest() const {
    return requests_[*std::ranges::max_element(
        left_, {}, [&](std::size_t i) { return ranks_of(requests_[i].job.plan); })];
  }

  void leave_out_what_has_no_room() {
    const int offered = known_ranks(widest().placing.hosts);
    if (offered == 0) return;
    std::erase_if(left_, [&](std::size_t i) {
      const Plan& plan = requests_[i].job.plan;
      if (ranks_of(plan) <= offered) return false;
      outcomes_[i].failure.emplace(
          ErrorCode::kBadInput,
          fmt::format("plan {} ({}) is for {} ranks, the hosts offer {}: name hosts with {} slots in all",
                      digest(plan), plan.method, ranks_of(plan), offered, ranks_of(plan)));
      return true;
    });
  }

  /// Until all that are left are finished, or one has failed.
  void run_session() {
    const std::vector<std::size_t> plans = left_;
    under_way_.reset();
    try {
      const RunRequest& most = widest();
      Placing placing = most.placing;
      const int ranks = ranks_of(most.job.plan);
      if (known_ranks(placing.hosts) > ranks) placing.hosts = first_ranks(placing.hosts, ranks);
      launch(
          to_json(order_for(plans)), launch_options(context_, placing, ranks),
          [&](const LaunchReport& report) { hear(plans, report); }, context_.cancellation);
      if (!left_.empty())
        throw Error(ErrorCode::kUnavailable, "the ranks ended without a report of every plan");
    } catch (const Error& error) {
      end_with(error);
    } catch (const std::exception& error) {
      end_with(Error(ErrorCode::kUnavailable, error.what()));
    }
  }

  Order order_for(const std::vector<std::size_t>& plans) const {
    const RunRequest& first = requests_[plans.front()];
    RunOrder order;
    order.network = first.placing.network;
    order.profile = first.job.profile;
    order.pace = pace_of(first);
    order.subnet = first.placing.subnet;
    order.network_options = first.placing.network_options;
    order.rounds = rounds_of(plans);
    for (const std::size_t i : plans) order.plans.push_back({requests_[i].job.plan, requests_[i].options});
    return order;
  }

  int rounds_of(const std::vector<std::size_t>& plans) const {
    if (plans.size() == 1) return 1;
    int fewest = requests_[plans.front()].options.iterations;
    for (const std::size_t i : plans) fewest = std::min(fewest, requests_[i].options.iterations);
    return std::max(1, fewest / kIterationsOfTurn);
  }

  void hear(const std::vector<std::size_t>& plans, const LaunchReport& report) {
    if (const auto* progress = std::get_if<Progressed>(&report)) context_.progress(*progress);
    const auto* found = std::get_if<Found>(&report);
    if (found == nullptr) return;
    if (found->kind == "facts") return compare(facts_from_json(found->value));
    const JsonPlace place(found->value);
    const JsonPlace number = place["plan"];
    const std::size_t plan = plans[number.integer(0, plans.size() - 1)];
    if (found->kind == "turn") {
      under_way_ = plan;
    } else if (found->kind == "iteration") {
      records_[plan]->add(Seconds{found->value.at("seconds").get<double>()});
    } else if (found->kind == "report") {
      finish(plan, run_report_from_json(found->value.at("report")));
    } else if (found->kind == "refused") {
      const JsonPlace code = place["code"], message = place["message"];
      fail(plan, Error(error_code_of(code.name()), message.text()));
    }
  }

  void compare(const probes::Facts& seen) {
    for (const std::size_t i : left_) {
      records_[i]->compare(seen);
      for (const std::string& difference : records_[i]->outcome().differences) {
        if (noted_.insert(difference).second) context_.note(difference_note(difference));
      }
    }
  }

  void finish(std::size_t plan, RunReport report) {
    records_[plan]->finish(std::move(report));
    leave(plan);
  }

  void fail(std::size_t plan, const Error& error) {
    records_[plan]->fail(with_next_plan(context_.store, requests_[plan], error));
    leave(plan);
  }

  void leave(std::size_t plan) {
    outcomes_[plan] = records_[plan]->outcome();
    std::erase(left_, plan);
  }

  /// The plan that had its turn has failed, and the session with it; the others may begin again. So may all
  /// where the plan whose turn was last had ended. Where none had begun nothing says that one ever will.
  void end_with(const Error& error) {
    const bool for_all =
        error.code() == ErrorCode::kInterrupted || error.code() == ErrorCode::kStorage || !under_way_;
    while (for_all && !left_.empty()) fail(left_.front(), error);
    if (under_way_ && std::ranges::count(left_, *under_way_) > 0) fail(*under_way_, error);
    for (const std::size_t plan : left_) records_[plan]->start_again();
  }

  Context& context_;
  const std::vector<RunRequest>& requests_;
  std::vector<RunOutcome>& outcomes_;
  std::vector<std::size_t> left_;                    // not finished and not failed
  std::optional<std::size_t> under_way_;             // whose turn it is
  std::vector<std::unique_ptr<RunRecord>> records_;  // by request; none of those that have no room
  std::set<std::string> noted_;
};

}  // namespace

Placing placing_for(Placing placing, const PlannedJob& job) {
  if (job.plan.transport.empty() || job.plan.transport == placing.network) return placing;
  placing.network = job.plan.transport;
  placing.subnet = job.over.subnet;
  placing.network_options = job.over.network_options;
  return placing;
}

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
  check_ranks(request);
  RunOutcome outcome = std::move(run_jobs(context, {request}).front());
  if (outcome.failure) throw Error(*outcome.failure);
  return outcome;
}

std::vector<RunOutcome> run_jobs(Context& context, std::vector<RunRequest> requests) {
  std::vector<RunOutcome> outcomes(requests.size());
  std::vector<bool> taken(requests.size(), false);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i].options.check();
    check_chunk(requests[i]);
    requests[i].options.chunk = requests[i].chunk();
    try {
      requests[i].placing.check();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kUnavailable) throw;
      outcomes[i].failure = with_next_plan(context.store, requests[i], error);
      taken[i] = true;
    }
  }
  for (std::size_t first = 0; first < requests.size(); ++first) {
    if (taken[first]) continue;
    std::vector<std::size_t> together;
    for (std::size_t i = first; i < requests.size(); ++i) {
      if (taken[i] || !share_a_session(requests[first], requests[i])) continue;
      taken[i] = true;
      together.push_back(i);
    }
    RunGroup(context, requests, std::move(together), outcomes).run();
  }
  return outcomes;
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
