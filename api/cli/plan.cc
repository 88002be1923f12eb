#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "api/actions/candidates.h"
#include "api/actions/probe.h"
#include "api/actions/tune.h"
#include "api/actions/verify.h"
#include "api/cli/commands.h"
#include "api/cli/job_flags.h"
#include "api/cli/knob_flags.h"
#include "api/cli/question_flags.h"
#include "api/launch/srun.h"
#include "api/output/explanation_text.h"
#include "api/output/report.h"
#include "api/question/candidates.h"
#include "api/view/outcome_json.h"
#include "api/view/timeline.h"
#include "executor/base/new_file.h"
#include "perfmodel/base/error.h"
#include "perfmodel/base/units.h"

namespace commtune::api {
namespace {

constexpr Seconds kUsualCheck{5};

struct PlanFlags {
  std::shared_ptr<PlacingFlags> placing;
  JobFlags job;
  std::string out, out_directory, method, trace;
  std::optional<Seconds> plan_time;
  std::optional<int> verify;  ///< how many plans are run
  Seconds verify_budget = tuner::VerifyLimits{}.budget;
  std::string check;  ///< for how long; empty: not said
  bool no_check = false;
  std::string keep = "all";
  std::string wire;
  int most_workers = 0;
  double least_efficiency = 0.8;
  std::vector<std::string> candidates;
  bool explain = false;
  bool probe = false;
  bool strict = false;
};

bool ask(const Session& session, const std::string& question) {
  if (::isatty(STDIN_FILENO) != 1 || ::isatty(STDERR_FILENO) != 1) return false;
  session.say(question + " [Y/n]");
  std::string answer;
  std::getline(std::cin, answer);
  return std::cin && (answer.empty() || answer == "y" || answer == "Y" || answer == "yes");
}

/// Probes the hosts when nothing is known of the cluster and the user wants that.
void probe_if_wanted(const Session& session, const PlanFlags& flags, Work& work) {
  const std::string& cluster = work.settings().cluster;
  if (!flags.job.cluster_file.empty() || is_probed(work.store(), cluster)) return;
  ProbeRequest request;
  request.cluster = cluster;
  request.placing = flags.placing->placing(work.settings());
  const bool here = all_local(request.placing.hosts);
  const std::string where =
      here ? fmt::format("this machine with {} ranks", known_ranks(request.placing.hosts))
           : fmt::format("its {} hosts", request.placing.hosts.hosts.size());
  if (!flags.probe &&
      !ask(session, fmt::format("Cluster \"{}\" has not been probed. Probe {} now?", cluster, where)))
    return;  // tune_job says what to do
  const InterruptGuard guard(*session.cancellation);
  const ProbeOutcome outcome = probe_cluster(work.context(), request);
  work.clear_progress();
  if (!session.json) session.print(probe_report(outcome) + "\n");
}

std::string plan_text(const Plan& plan) { return commtune::to_json(plan).dump(1) + "\n"; }

void write_plans(const PlanFlags& flags, const tuner::Answer& answer) {
  if (!flags.out.empty()) write_file(flags.out, plan_text(entry_of(answer, flags.method).plan));
  if (flags.out_directory.empty()) return;
  const std::filesystem::path directory(flags.out_directory);
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error)
    throw Error(ErrorCode::kStorage, fmt::format("--out-dir {}: {}", flags.out_directory, error.message()));
  for (const tuner::Entry& entry : answer.ranking)
    write_file(directory / (entry.method + ".json"), plan_text(entry.plan));
}

/// The hosts as the user would name them again.
std::string host_flags(const PlanFlags& flags, const Settings& settings) {
  if (!flags.placing->host_list.empty()) return fmt::format(" -H '{}'", flags.placing->host_list);
  if (!settings.hosts.empty()) return fmt::format(" --hosts {}", settings.hosts.string());
  return settings.cluster == "local" && flags.job.cluster_file.empty() ? "" : " --hosts FILE";
}

void print_launch(const Session& session, const PlanFlags& flags, Work& work, const TuneOutcome& outcome) {
  const tuner::Entry& entry = entry_of(outcome.answer, flags.method);
  if (!outcome.plans.contains(entry.method)) return;  // it is not stored
  const std::string hosts = host_flags(flags, work.settings());
  const RowId chosen = outcome.plans.at(outcome.chosen().method);
  session.print(fmt::format("\nrun it:        tune run {}{}\nrun them all:  tune run {} --method all{}\n",
                            outcome.plans.at(entry.method), hosts, chosen, hosts));
  if (hosts.ends_with("FILE")) return;
  Settings settings = work.settings();
  settings.local_ranks = ranks_of(entry.plan);
  const LaunchOptions launch =
      launch_options(work.context(), flags.placing->placing(settings), ranks_of(entry.plan));
  session.print(fmt::format("which starts:  {}\n", quoted(launch_command(launch.mpirun, inspect_site()))));
}

void write_trace(const PlanFlags& flags, const TuneOutcome& outcome) {
  if (flags.trace.empty()) return;
  const PlanView view{
      {}, entry_of(outcome.answer, flags.method).plan, outcome.made.profile, outcome.made.cluster, true};
  write_file(flags.trace, timeline_to_trace(view).dump() + "\n");
}

/// Everything about one plan: its timeline, what holds it up, and what would change the answer.
std::string explained_text(const Explained& explained) {
  std::string text = fmt::format("\npredicted iteration of {}, {}:\n", explained.method,
                                 format_time(explained.explanation.prediction.iteration));
  text += to_text(explained.explanation, explained.plan);
  if (!explained.flips.empty()) text += "\nwhat would change the answer\n";
  for (const tuner::Flip& flip : explained.flips) text += "  " + flip.sentence + "\n";
  return text;
}

void print_answer(const Session& session, const PlanFlags& flags, Work& work, const TuneOutcome& outcome) {
  const Profile& profile = outcome.made.profile;
  if (session.json) {
    session.print_json(to_json(outcome));
    return;
  }
  if (flags.job.scaled())
    session.print(fmt::format("scaled by request: tensor sizes x {:g}, layer times x {:g}\n",
                              flags.job.scale_bytes, flags.job.scale_time));
  session.print(fmt::format("layer times of {}: {}{}\n", profile.model, profile.origin.how,
                            profile.origin.device.empty() ? "" : " for " + profile.origin.device));
  if (flags.explain && !profile.origin.note.empty()) session.print(profile.origin.note + "\n");
  session.print(ranking_report(outcome));
  if (const auto& recommended = outcome.recommended)
    session.print(fmt::format("worth having:  {} workers ({})\n", recommended->workers, recommended->reason));
  if (flags.explain)
    session.print("\n" + explanation(outcome) +
                  (outcome.explained ? explained_text(*outcome.explained) : std::string()));
  print_launch(session, flags, work, outcome);
}

bool names_hosts(const Session& session, const PlanFlags& flags, const Settings& settings) {
  return !settings.hosts.empty() || !flags.placing->host_list.empty() ||
         session.flags.contains("local_ranks");
}

/// Hosts as for `tune run`; this machine only where the cluster is nothing else, or where it was asked for.
Placing placing_of_runs(const Session& session, const PlanFlags& flags, Work& work,
                        const Question& question) {
  const std::shared_ptr<const Cluster> fitted = find_fitted(work.store(), question.cluster).cluster;
  const Cluster& cluster = *fitted;
  Settings settings = work.settings();
  if (!names_hosts(session, flags, settings)) {
    if (!all_local({cluster.hosts, {}}))
      throw Error(ErrorCode::kBadInput,
                  fmt::format("{}: cluster \"{}\" is not this machine: name its hosts with --hosts FILE "
                              "or -H LIST, or ask for ranks here with --local N",
                              question.verify ? "--verify" : "--check", cluster.name));
    settings.local_ranks = ranks_of_job(flags.job.options, cluster);
  }
  return flags.placing->placing(settings, probed_over(cluster.transport, cluster.facts));
}

std::optional<tuner::VerifyLimits> verify_limits(const PlanFlags& flags) {
  if (!flags.verify) return {};
  tuner::VerifyLimits limits;
  limits.plans = *flags.verify;
  limits.budget = flags.verify_budget;
  return limits;
}

/// Where nothing is said of it, plans are checked wherever they can be run, unless they are verified anyhow.
/// A file's cluster may be made up: its plans are not run unasked.
std::optional<Seconds> check_time(const Session& session, const PlanFlags& flags, const Settings& settings,
                                  const Question& question) {
  if (flags.no_check) return {};
  if (flags.check.empty()) {
    const bool can_run = names_hosts(session, flags, settings) && !question.cluster.given &&
                         !question.is_changed() && question.most_workers == 0 &&
                         question.candidates.empty() && question.keep != Keep::kNone;
    return can_run && !question.verify ? std::optional(kUsualCheck) : std::nullopt;
  }
  if (flags.check == "0") return {};
  const Seconds time = parse_flag("--check", flags.check, parse_duration);
  return time == Seconds{0} ? std::nullopt : std::optional(time);
}

Question question_of(const Session& session, const PlanFlags& flags, Work& work) {
  Question question = flags.job.question(work);
  question.strict = flags.strict;
  question.keep = keep_named(flags.keep);
  if (!flags.wire.empty()) question.wire = wire_format_named(flags.wire);
  question.most_workers = flags.most_workers;
  question.least_efficiency = flags.least_efficiency;
  if (flags.explain) question.explain = flags.method;
  for (const std::string& text : flags.candidates)
    question.candidates.push_back(parse_flag(knob::kCandidates.flag, text, candidate_from_text));
  question.plan_time = flags.plan_time;
  question.verify = verify_limits(flags);
  question.check = check_time(session, flags, work.settings(), question);
  if (question.asks_for_runs()) check_runs(question);
  check_candidates(question);
  return question;
}

void compare_places(const Session& session, Work& work, const Question& question) {
  const nlohmann::json compared = candidates_job(work.context(), question);
  work.clear_progress();
  if (session.json) {
    session.print_json(compared);
  } else {
    session.print(candidates_report(compared));
  }
}

void run_plan_command(const Session& session, PlanFlags& flags) {
  Work work(session);
  const Question question = question_of(session, flags, work);
  probe_if_wanted(session, flags, work);
  if (!question.candidates.empty()) {
    compare_places(session, work, question);
    return;
  }
  Placing placing;
  std::optional<InterruptGuard> guard;
  if (question.asks_for_runs()) {
    placing = placing_of_runs(session, flags, work, question);
    guard.emplace(*session.cancellation);
  }
  const TuneOutcome outcome = tune_job(work.context(), question, placing);
  guard.reset();
  work.clear_progress();
  entry_of(outcome.answer, flags.method);
  write_plans(flags, outcome.answer);
  write_trace(flags, outcome);
  print_answer(session, flags, work, outcome);
}

}  // namespace

void add_plan_command(CLI::App& tune, Session& session) {
  CLI::App* command = tune.add_subcommand("plan",
                                          "Rank all methods that commtune knows for a model on a probed "
                                          "cluster (`tune MODEL` is short for `tune plan "
                                          "MODEL`)");
  command->footer(
      "Examples:\n"
      "  tune resnet50                                     on cluster \"local\"; probes this machine if "
      "asked to\n"
      "  tune bert_large --cluster lab --explain\n"
      "  tune resnet50 --cluster lab --hosts hosts.txt             runs the leading plans for 5 s first\n"
      "  tune resnet50 --cluster lab --hosts hosts.txt --verify    run what the doubt cannot tell apart\n"
      "  tune resnet50 --cluster lab --candidate 'all' --candidate 'one nodes=n1'      where is it faster?\n"
      "  tune resnet50 --cluster lab --wire bf16             gradients cast to bf16: half the bytes, lossy\n"
      "  tune my-model.json --cluster lab --workers 8 --out plan.json\n"
      "  tune resnet50 --cluster-file lab.json               a cluster from a file\n"
      "  tune resnet50 --cluster lab --scale-bytes 0.1 --scale-time 0.2");
  auto flags = std::make_shared<PlanFlags>();
  add_job_flags(*command, flags->job);
  flags->placing = add_placing_flags(*command, session);
  add_common_flags(*command, session, {"cluster", "fit_age"});
  add_knob(*command, knob::kWorkers, flags->job.options.workers);
  add_knob(*command, knob::kServers, flags->job.options.limits.colocated_servers);
  add_allocation_flags(*command, flags->job.allocation);
  add_knob(*command, knob::kRecommendWorkers, flags->most_workers)->check(range_of(knob::kRecommendWorkers));
  add_knob(*command, knob::kLeastEfficiency, flags->least_efficiency)
      ->check(range_of(knob::kLeastEfficiency));
  add_knob(*command, knob::kWire, flags->wire)->check(CLI::IsMember({"bf16", "fp16", "as-is"}));
  add_knob(*command, knob::kKeep, flags->keep)
      ->check(CLI::IsMember({"none", "chosen", "all"}))
      ->capture_default_str();
  command->add_option("--method", flags->method,
                      "write and name this method's plan in place of the chosen one");
  command->add_option("--out", flags->out, "write the plan to this file")->type_name("FILE");
  command->add_option("--out-dir", flags->out_directory, "write every method's plan into this folder")
      ->type_name("DIR");
  add_knob(*command, knob::kExplain, flags->explain);
  command->add_option("--predicted-trace", flags->trace, "write the predicted iteration as a Chrome trace")
      ->type_name("FILE");
  add_knob(*command, knob::kStrict, flags->strict);
  add_knob(*command, knob::kPlanTime, flags->plan_time);
  add_knob(*command, knob::kCheck, flags->check)->type_name("TIME");
  command->add_flag("--no-check", flags->no_check, "the same as --check 0");
  CLI::Option* const verify = add_knob(*command, knob::kVerify, flags->verify)
                                  ->expected(0, 1)
                                  ->default_str(std::to_string(tuner::VerifyLimits{}.plans));
  add_knob(*command, knob::kVerifyBudget, flags->verify_budget)->needs(verify);
  CLI::Option* const candidates =
      add_knob(*command, knob::kCandidates, flags->candidates)->expected(1)->take_all();
  for (const char* of_one_plan : {"--method", "--out", "--out-dir", "--predicted-trace"})
    candidates->excludes(command->get_option(of_one_plan));
  // Each candidate says for itself where it is.
  for (const Knob& knob : knob::kPlacement) candidates->excludes(command->get_option(std::string(knob.flag)));
  command->add_flag("--probe", flags->probe, "probe the hosts first if this cluster has not been probed");
  command->callback(
      [&session, flags] { session.action = [&session, flags] { run_plan_command(session, *flags); }; });
}

}  // namespace commtune::api
