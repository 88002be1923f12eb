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
  bool unpaced = false;
  bool strict = false;
  std::string trace;
};

RunOptions options_of(const RunFlags& flags, const std::string& method) {
  RunOptions options = flags.options;
  if (flags.trace.empty()) return options;
  // Ranks run elsewhere, where this directory may mean another place.
  std::filesystem::path directory = std::filesystem::absolute(flags.trace);
  if (flags.methods.size() > 1) directory /= method;
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) throw Error(ErrorCode::kStorage, fmt::format("--trace {}: {}", flags.trace, error.message()));
  options.trace_directory = directory.string();
  return options;
}

RunOutcome run_one(const Session& session, const RunFlags& flags, Work& work, const PlannedJob& job) {
  RunRequest request;
  request.job = job;
  Settings settings = work.settings();
  if (settings.hosts.empty() && flags.placing->host_list.empty() && !session.flags.contains("local_ranks"))
    settings.local_ranks = ranks_of(job.plan);
  request.placing = flags.placing->placing(settings, job.over);
  request.options = options_of(flags, job.plan.method);
  request.paced = !flags.unpaced;
  request.strict = flags.strict;
  return run_job(work.context(), request);
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

void run_command(const Session& session, RunFlags& flags) {
  Work work(session);
  if (flags.name.cluster.empty()) flags.name.cluster = work.settings().cluster;
  const std::vector<PlannedJob> jobs = find_jobs(work.context(), flags.name, flags.methods);
  if (flags.placing->dry_run) {
    print_command(session, flags, work, jobs.front());
    return;
  }
  const InterruptGuard guard(*session.cancellation);
  std::vector<RunOutcome> outcomes;
  try {
    for (const PlannedJob& job : jobs) outcomes.push_back(run_one(session, flags, work, job));
  } catch (const Error&) {
    work.clear_progress();
    if (!outcomes.empty()) print_outcomes(session, outcomes);
    throw;
  }
  work.clear_progress();
  print_outcomes(session, outcomes);
}

}  // namespace

void add_run_command(CLI::App& tune, Session& session) {
  CLI::App* command =
      tune.add_subcommand("run", "Replay a plan, predicted against measured: nothing is trained");
  command->footer(
      "Examples:\n"
      "  tune run latest                                   the plan that was chosen last\n"
      "  tune run latest --method ddp-25mib                   another method's plan of the same ranking\n"
      "  tune run latest --method chosen --method worst      compare two; `--method all` for all of them\n"
      "  tune run plan.json --hosts hosts.txt --trace traces --iterations 50\n"
      "  tune run latest --model timed-again.json            the same plan with newer layer times\n"
      "In a replay layers sleep for the profile's times, and made-up gradients of the model's sizes travel "
      "by\n"
      "the plan and are checked. No model code runs.\n"
      "Trace files open in Perfetto: one a rank, and all_ranks.json with all of them beside the prediction.");
  auto flags = std::make_shared<RunFlags>();
  add_knob(*command, knob::kPlan, flags->name.text)->required();
  flags->placing = add_placing_flags(*command, session);
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
  command->callback(
      [&session, flags] { session.action = [&session, flags] { run_command(session, *flags); }; });
}

}  // namespace commtune::api
