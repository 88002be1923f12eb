// `tune`: the command line. Everything that another way in would have to repeat is in api/actions.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "api/cli/commands.h"
#include "api/cli/knob_flags.h"
#include "api/error_status.h"
#include "api/text.h"
#include "api/version.h"
#include "perfmodel/base/error.h"
#include "perfmodel/shipped_profiles.h"

extern char** environ;

namespace commtune::api {
namespace {

constexpr std::array<std::string_view, 14> kCommands = {"plan",  "probe", "profile", "run",     "show",
                                                        "scale", "map",   "config",  "methods", "export",
                                                        "serve", "token", "store",   "manual"};

Environment read_environment() {
  Environment environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const auto equals = text.find('=');
    if (equals != std::string_view::npos)
      environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return environment;
}

/// `tune resnet50 ...` is short for `tune plan resnet50 ...`. Throws for a word that was meant as a command.
void complete_command(std::vector<std::string>& arguments) {
  if (arguments.empty()) return;
  const std::string& first = arguments.front();
  if (first == "-h" || first == "--help" || first == "--version") return;
  if (std::find(kCommands.begin(), kCommands.end(), first) != kCommands.end()) return;
  const std::vector<std::string> models = shipped_profile_names();
  const std::string meant = did_you_mean(first, std::span<const std::string_view>(kCommands));
  const bool is_word = first.find_first_of("/.-") == std::string::npos;
  if (is_word && !meant.empty() && did_you_mean(first, models).empty())
    throw Error(ErrorCode::kBadInput, fmt::format("\"{}\": no such command or model{}", first, meant));
  arguments.insert(arguments.begin(), "plan");
}

std::string exit_table() {
  std::string text = "Exit status:\n  0    done\n  1    a defect of this program\n";
  for (const ErrorCode code : {ErrorCode::kBadInput, ErrorCode::kNotFound, ErrorCode::kPoorFit,
                               ErrorCode::kConflict, ErrorCode::kTimeout, ErrorCode::kPeerLost,
                               ErrorCode::kStorage, ErrorCode::kUnavailable, ErrorCode::kInterrupted})
    text += fmt::format("  {:<4} {}\n", error_status(code).exit_status, error_status(code).meaning);
  return text;
}

void describe_app(CLI::App& app) {
  app.name("tune");
  app.formatter(help_formatter());
  app.description(
      "Finds how a distributed training job should move its gradients on a cluster: measures the cluster,\n"
      "ranks the published methods that it knows and a plan of its own for the model, says how far each is\n"
      "from a lower bound (under the costs that were fitted and over the roads that it priced), and replays\n"
      "the plan: gradients travel, nothing is trained.");
  app.set_version_flag("--version", std::string(kVersion));
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  tune resnet50 --probe                     on this machine: probe it, then rank all methods\n"
      "  tune probe --hosts hosts.txt --cluster lab\n"
      "  tune resnet50 --cluster lab\n"
      "  tune profile resnet50 --batch 16          time the model's layers on this machine\n"
      "  tune run latest --hosts hosts.txt\n\n" +
      exit_table());
}

int report_failure(const Session& session, ErrorCode code, const std::string& message) {
  const ErrorStatus& status = error_status(code);
  std::fputs(fmt::format("tune: {}\n", message).c_str(), stderr);
  if (session.json && !session.answered) {
    const nlohmann::json document{{"error", {{"code", status.name}, {"message", message}}}};
    std::fputs((document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n").c_str(),
               stdout);
  }
  return status.exit_status;
}

int tune(std::vector<std::string> arguments, Session& session) {
  CLI::App app;
  describe_app(app);
  add_plan_command(app, session);
  add_probe_command(app, session);
  add_profile_command(app, session);
  add_run_command(app, session);
  add_show_command(app, session);
  add_scale_command(app, session);
  add_map_command(app, session);
  add_export_command(app, session);
  add_serve_command(app, session);
  add_token_command(app, session);
  add_store_command(app, session);
  add_config_command(app, session);
  add_methods_command(app, session);
  add_manual_command(app, session);
  try {
    if (arguments.empty()) arguments.emplace_back("--help");
    complete_command(arguments);
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants a vector
    app.parse(arguments);
    session.action();
    return 0;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) return app.exit(error);
    return report_failure(session, ErrorCode::kBadInput, fmt::format("{} (see --help)", error.what()));
  } catch (const Error& error) {
    return report_failure(session, error.code(), error.what());
  }
}

}  // namespace
}  // namespace commtune::api

int main(int argc, char** argv) {
  using namespace commtune::api;
  try {
    Cancellation cancellation;
    Session session;
    session.environment = read_environment();
    std::error_code error;
    session.program = std::filesystem::read_symlink("/proc/self/exe", error);
    session.cancellation = &cancellation;
    return tune({argv + 1, argv + argc}, session);
  } catch (const std::exception& error) {
    std::fputs("tune: internal error: ", stderr);
    std::fputs(error.what(), stderr);
    std::fputs("\n", stderr);
    return kExitDefect;
  }
}
