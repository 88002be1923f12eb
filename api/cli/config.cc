#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "api/cli/commands.h"
#include "api/output/table.h"

namespace commtune::api {
namespace {

void print_settings(const Session& session) {
  const ResolvedSettings resolved = session.resolve();
  if (session.json) {
    session.print_json(to_json(resolved));
    return;
  }
  Table table({{"setting", Align::kLeft},
               {"value", Align::kLeft},
               {"from", Align::kLeft},
               {"flag", Align::kLeft},
               {"variable", Align::kLeft},
               {"what it is", Align::kLeft}});
  for (const ResolvedSetting& origin : resolved.origins)
    table.add({std::string(origin.row->name), origin.value.empty() ? "-" : origin.value, origin.source,
               std::string(origin.row->flag), std::string(origin.row->variable),
               std::string(origin.row->what)});
  session.print(table.text());
  session.print(
      fmt::format("\nsettings file: {}{}\n", resolved.file.string(),
                  resolved.file_exists ? "" : " (absent; an object such as {\"cluster\": \"lab\"})"));
  for (const std::string& warning : resolved.warnings) session.say(fmt::format("warning: {}", warning));
}

}  // namespace

void add_config_command(CLI::App& tune, Session& session) {
  CLI::App* command = tune.add_subcommand("config", "Print all settings, and where each came from");
  command->footer(
      "Examples:\n"
      "  tune config\n"
      "  COMMTUNE_CLUSTER=lab tune config\n"
      "Flags win over COMMTUNE_* variables, these over the settings file.");
  add_common_flags(*command, session,
                   {"cluster", "hosts", "local_ranks", "mpirun", "rank_program", "start_timeout",
                    "silence_timeout", "fit_age"});
  command->callback([&session] { session.action = [&session] { print_settings(session); }; });
}

}  // namespace commtune::api
