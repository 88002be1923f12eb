#include "api/export/export.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "api/actions/run.h"
#include "api/cli/commands.h"
#include "api/cli/knob_flags.h"
#include "api/export/variables.h"
#include "api/question/plan_lookup.h"
#include "api/question/plan_view.h"
#include "executor/base/new_file.h"
#include "perfmodel/base/error.h"
#include "tuner/nccl_tunings.h"

namespace commtune::api {
namespace {

struct ExportFlags {
  PlanName name;
  std::string method, target, out;
};

void run_export(const Session& session, const ExportFlags& flags) {
  Work work(session);
  const std::vector<std::string> methods =
      flags.method.empty() ? std::vector<std::string>{} : std::vector<std::string>{flags.method};
  const PlannedJob job = find_jobs(work.context(), flags.name, methods).front();
  const Store& store = work.context().store;
  // Another method's plan is priced like the one that was named: where its ranking was made.
  const PlannedJob named = methods.empty() ? job : find_jobs(work.context(), flags.name, {}).front();
  const PlanView view = view_plan(store, plan_with_id(store, named.plan_id));
  const Exported exported = export_plan(flags.target, job.plan, job.profile,
                                        {prediction_beside(view), tuner::nccl_tunings(view.cluster)});
  if (!flags.out.empty()) write_file(flags.out, exported.text);
  if (session.json) {
    nlohmann::json document = to_json(exported);
    document["plan"] = job.plan_id;
    document["method"] = job.plan.method;
    session.print_json(document);
    return;
  }
  if (flags.out.empty()) session.print(exported.text);
  for (const auto& [name, time] : exported.predicted)
    session.say(fmt::format("predicted with {}: {} an iteration", name, format_time(time)));
  for (const std::string& gap : exported.not_expressed) session.say("not expressed: " + gap);
}

}  // namespace

void add_export_command(CLI::App& tune, Session& session) {
  CLI::App* command = tune.add_subcommand("export", "Print a plan as the settings of another framework");
  std::string footer =
      "Examples:\n"
      "  tune export latest --to horovod\n"
      "  tune export latest --to deepspeed --out ds_config.json\n"
      "  eval \"$(tune export 12 --to env)\"\n"
      "What an iteration is predicted to take, and what a target cannot express, is said on standard "
      "error.\n\n"
      "Targets:\n";
  std::vector<std::string> names;
  for (const ExportTarget& target : export_targets()) {
    footer += fmt::format("  {:<10} {}\n", target.name, target.what);
    names.emplace_back(target.name);
  }
  footer += "\nVariables that targets set; schedulers' helpers take no others from the service:\n";
  for (const VariableRow& variable : kVariables)
    footer += fmt::format("  {:<30} {}\n", variable.name, variable.what);
  command->footer(footer);
  auto flags = std::make_shared<ExportFlags>();
  add_knob(*command, knob::kPlan, flags->name.text)->required();
  command->add_option("--to", flags->target, "the target, as listed below")
      ->required()
      ->check(CLI::IsMember(names))
      ->type_name("NAME");
  command->add_option("--method", flags->method, "another method of the plan's ranking")
      ->default_str("the plan itself");
  add_knob(*command, knob::kModel, flags->name.profile);
  command->add_option("--out", flags->out, "write the settings to this file")->type_name("FILE");
  add_common_flags(*command, session, {});
  command->callback(
      [&session, flags] { session.action = [&session, flags] { run_export(session, *flags); }; });
}

}  // namespace commtune::api
