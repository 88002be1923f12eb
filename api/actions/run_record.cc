#include "api/actions/run_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "api/question/fit_marks.h"
#include "api/version.h"
#include "api/view/predicted_trace.h"
#include "executor/transport/registry/kinds.h"
#include "perfmodel/base/error.h"
#include "perfmodel/base/json_reader.h"
#include "store/owner.h"

namespace commtune::api {
namespace {

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

/// group  as RunRecord's
NewRun new_run(const RunRequest& request, const Context& context, const std::string& group) {
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
  if (!group.empty()) run.settings["group"] = group;
  run.versions["commtune"] = kVersion;
  run.owner = this_process();
  return run;
}

}  // namespace

double pace_of(const RunRequest& request) {
  const TransportKind* kind = find_transport(request.placing.network);
  return request.paced && kind != nullptr && kind->takes_pace ? request.job.link_rate : 0;
}

bool share_a_session(const RunRequest& a, const RunRequest& b) {
  const auto key = [](const RunRequest& request) {
    return std::tuple(request.placing.network, request.placing.subnet, request.placing.network_options,
                      request.placing.mpirun_arguments, request.job.plan.workers,
                      commtune::digest(request.job.profile), pace_of(request), request.options.result,
                      request.options.timeout, request.options.chunk, request.options.device);
  };
  return key(a) == key(b);
}

probes::Facts facts_from_json(const nlohmann::json& value) {
  const JsonPlace place(value);
  const JsonPlace named = place["facts"];
  probes::Facts facts;
  for (const auto& [name, fact] : named.object().items()) facts[name] = named[name].text();
  return facts;
}

RunRecord::RunRecord(Context& context, const RunRequest& request, const std::string& group)
    : context_(context), request_(request) {
  outcome_.device = request.options.device;
  outcome_.predicted = request.job.predicted;
  outcome_.run = context.store.start_run(new_run(request, context, group));
}

void RunRecord::compare(const probes::Facts& seen) {
  const probes::Facts& fitted = request_.job.fitted_facts;
  if (fitted.empty()) return;
  probes::Facts facts = seen;
  if (request_.job.cluster_id)
    context_.store.see_facts(*request_.job.cluster_id, probes::of_known_hosts(facts, fitted));
  for (const auto& [name, value] : transport_settings(context_, request_.placing))
    facts["setting." + name] = value;
  outcome_.differences = probes::fact_differences(fitted, facts);
  if (request_.strict) refuse_differences(outcome_.differences);
}

void RunRecord::finish(RunReport report) {
  outcome_.report = std::move(report);
  RunResult result = run_result(WorkState::kComplete, outcome_.report.iteration_seconds, {});
  result.differences = outcome_.differences;
  result.trace_path = request_.options.trace_directory;
  result.messages = commtune::to_json(outcome_.report).at("messages");
  add_prediction(context_, request_);
  context_.store.finish_run(outcome_.run, result);
}

void RunRecord::fail(const Error& error) {
  const bool interrupted = error.code() == ErrorCode::kInterrupted;
  RunResult failed =
      run_result(interrupted ? WorkState::kInterrupted : WorkState::kFailed, iterations_, error.what());
  failed.differences = outcome_.differences;
  outcome_.failure = error;
  context_.store.finish_run(outcome_.run, failed);
}

std::string difference_note(const std::string& difference) {
  return fmt::format("the prediction rests on a fit made under other conditions: {}", difference);
}

}  // namespace commtune::api
