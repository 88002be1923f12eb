#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "api/actions/run.h"
#include "api/cli/commands.h"
#include "api/cli/knob_flags.h"
#include "api/launch/srun.h"
#include "api/output/report.h"
#include "perfmodel/base/error.h"

namespace commtune::api {
namespace {

struct RunFlags {
  std::shared_ptr<PlacingFlags> placing;
  PlanName name;
  std::vector<std::string> methods;
  RunOptions options;
  std::optional<DeviceKind> device;
  bool unpaced = false;
  bool strict = false;
  std::string trace;
};

/// several  plans run: each has a folder of its own for its traces
RunOptions options_of(const RunFlags& flags, const std::string& method, bool several) {
  RunOptions options = flags.options;
  if (flags.trace.empty()) return options;
  // Ranks run elsewhere, where this directory may mean another place.
  std::filesystem::path directory = std::filesystem::absolute(flags.trace);
  if (several) directory /= method;
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) throw Error(ErrorCode::kStorage, fmt::format("--trace {}: {}", flags.trace, error.message()));
  options.trace_directory = directory.string();
  return options;
}

RunRequest request_for(const Session& session, const RunFlags& flags, const Work& work, const PlannedJob& job,
                       bool several) {
  RunRequest request;
  request.job = job;
  Settings settings = work.settings();
  if (settings.hosts.empty() && flags.placing->host_list.empty() && !session.flags.contains("local_ranks"))
    settings.local_ranks = ranks_of(job.plan);
  request.placing = flags.placing->placing(settings, job.over);
  request.options = options_of(flags, job.plan.method, several);
  request.options.device = flags.device.value_or(job.device);
  request.paced = !flags.unpaced;
  request.strict = flags.strict;
  return request;
}

void print_command(const Session& session, const RunFlags& flags, Work& work, const PlannedJob& job) {
  const Placing placing = flags.placing->placing(work.settings(), job.over);
  const LaunchOptions launch = launch_options(work.context(), placing, ranks_of(job.plan));
  session.print(quoted(launch_command(launch.mpirun, inspect_site())) + "\n");
}

void print_outcomes(const Session& session, const std::vector<RunOutcome>& outcomes) {
  if (session.json) {
    nlohmann::json runs = nlohmann::json::array();
    for (const RunOutcome& outcome : outcomes) runs.push_back(to_json(outcome));
    session.print_json(nlohmann::json{{"runs", std::move(runs)}});
    return;
  }
  for (const RunOutcome& outcome : outcomes) session.print(run_report(outcome));
  session.print("\n" + run_table(outcomes));
}

std::vector<RunOutcome> run_requests(Work& work, const std::vector<RunRequest>& requests) {
  try {
    if (requests.size() > 1) return run_jobs(work.context(), requests);
    return {run_job(work.context(), requests.front())};
  } catch (const Error&) {
    work.clear_progress();
    throw;
  }
}

/// What was measured first, then why the rest was not: the first reason is the command's.
void print_and_fail(const Session& session, Work& work, std::vector<RunOutcome> outcomes) {
  work.clear_progress();
  std::optional<Error> first;
  for (const RunOutcome& outcome : outcomes) {
    if (!outcome.failure) continue;
    if (first) work.context().note(outcome.failure->what());
    if (!first) first = outcome.failure;
  }
  std::erase_if(outcomes, [](const RunOutcome& outcome) { return outcome.failure.has_value(); });
  if (!outcomes.empty()) print_outcomes(session, outcomes);
  if (first) throw Error(*first);
}

void run_command(const Session& session, RunFlags& flags) {
  Work work(session);
  if (flags.name.cluster.empty()) flags.name.cluster = work.settings().cluster;
  const std::vector<PlannedJob> jobs = find_jobs(work.context(), flags.name, flags.methods);
  if (flags.placing->dry_run) {
    print_command(session, flags, work, jobs.front());
    return;
  }
  const InterruptGuard guard(*session.cancellation);
  std::vector<RunRequest> requests;
  requests.reserve(jobs.size());
  for (const PlannedJob& job : jobs)
    requests.push_back(request_for(session, flags, work, job, jobs.size() > 1));
  print_and_fail(session, work, run_requests(work, requests));
}

}  // namespace

void add_run_command(CLI::App& tune, Session& session) {
  CLI::App* command =
      tune.add_subcommand("run", "Replay a plan, predicted against measured: nothing is trained");
  command->footer(
      "Examples:\n"
      "  tune run latest                                   the plan that was chosen last\n"
      "  tune run latest --method ddp-25mib                   another method's plan of the same ranking\n"
      "  tune run latest --method chosen --method worst      compare two; `--method all` for all of them. "
      "They take\n"
      "                                                    turns, so that all of them see the same minutes\n"
      "  tune run plan.json --hosts hosts.txt --trace traces --iterations 50\n"
      "  tune run latest --model timed-again.json            the same plan with newer layer times\n"
      "  tune run latest --device cuda                       layers are kernels, gradients lie on GPUs\n"
      "In a replay layers sleep for the profile's times (on GPUs: kernels of that length run), and made-up\n"
      "gradients of the model's sizes travel by the plan and are checked. No model code runs.\n"
      "Trace files open in Perfetto: one a rank, and all_ranks.json with all of them beside the prediction.");
  auto flags = std::make_shared<RunFlags>();
  add_knob(*command, knob::kPlan, flags->name.text)->required();
  flags->placing = add_placing_flags(*command, session, knob::kRunOver);
  add_dry_run_flag(*command, *flags->placing);
  add_common_flags(*command, session, {"cluster"});
  RunOptions& options = flags->options;
  add_knob(*command, knob::kMethods, flags->methods)->expected(1)->take_all();
  add_knob(*command, knob::kModel, flags->name.profile);
  add_knob(*command, knob::kRunIterations, options.iterations);
  add_knob(*command, knob::kRunWarmup, options.warmup);
  add_knob(*command, knob::kCheckIterations, options.check_iterations);
  add_knob(*command, knob::kTrace, flags->trace);
  add_knob(*command, knob::kTraceSteps, options.trace_steps);
  add_knob(*command, knob::kTimeout, options.timeout);
  add_knob(*command, knob::kRunStrict, flags->strict);
  add_knob(*command, knob::kUnpaced, flags->unpaced);
  add_knob(*command, knob::kChunk, options.chunk);
  add_knob(*command, knob::kRunDevice, flags->device);
  command->callback(
      [&session, flags] { session.action = [&session, flags] { run_command(session, *flags); }; });
}

}  // namespace commtune::api
