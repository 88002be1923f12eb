#include "api/cli/session.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "api/cli/knob_flags.h"
#include "executor/transport/registry/kinds.h"
#include "perfmodel/base/error.h"

namespace commtune::api {
namespace {

int terminal_columns() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

void add_setting_flag(CLI::App& command, Session& session, std::string_view name) {
  for (const SettingRow& row : setting_rows()) {
    if (row.name != name) continue;
    command
        .add_option_function<std::string>(
            std::string(row.flag),
            [&session, name = std::string(name)](const std::string& text) { session.flags[name] = text; },
            fmt::format("{} ({}; {})", row.what, row.rule, row.variable))
        ->type_name("TEXT");
  }
}

/// One of these names, or that of a transport that joins no processes: it is no choice, and is refused with
/// its reason as one is that these hosts cannot use.
CLI::Validator one_of_transports(const std::vector<std::string>& names) {
  const CLI::IsMember known(names);
  const auto check = [known](std::string& name) {
    const TransportKind* kind = find_transport(name);
    return kind != nullptr && !joins_processes(*kind) ? std::string() : known(name);
  };
  return {check, known.get_description()};
}

}  // namespace

ResolvedSettings Session::resolve() const {
  return resolve_settings({flags, environment, settings_file, program});
}

void Session::print(std::string_view text) const {
  const bool whole = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (std::fflush(stdout) != 0 || !whole)
    throw Error(ErrorCode::kStorage, fmt::format("standard output: {}", std::strerror(errno)));
}

void Session::print_json(const nlohmann::json& document) const {
  answered = true;
  print(document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

void Session::say(std::string_view line) const {
  const std::string text = fmt::format("{}\n", line);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

std::unique_ptr<Progress> Session::progress(const Settings& settings) const {
  ProgressOptions options;
  options.enabled = settings.progress != ProgressMode::kNever;
  options.terminal = ::isatty(STDERR_FILENO) == 1;
  options.columns = terminal_columns();
  if (settings.progress == ProgressMode::kJson) {
    options.json = true;
    options.terminal = false;
    options.quiet = options.line_interval = Seconds{1};
  }
  return std::make_unique<Progress>(std::move(options), [](std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
  });
}

void add_common_flags(CLI::App& command, Session& session, std::initializer_list<std::string_view> settings) {
  add_setting_flag(command, session, "db");
  add_setting_flag(command, session, "progress");
  for (const std::string_view name : settings) add_setting_flag(command, session, name);
  command.add_option("--config", session.settings_file, "settings file (COMMTUNE_CONFIG)")->type_name("PATH");
  command.add_flag("--json", session.json, "print the result as JSON");
}

std::shared_ptr<PlacingFlags> add_placing_flags(CLI::App& command, Session& session, const Knob& network,
                                                std::string_view more) {
  auto flags = std::make_shared<PlacingFlags>();
  command
      .add_option("-H,--host-list", flags->host_list,
                  "hosts as h1:4,h2:4 or tux[0-3,12]:2, in place of --hosts")
      ->type_name("LIST");
  for (const std::string_view name : {"hosts", "local_ranks", "subnet", "network_options", "mpirun",
                                      "rank_program", "start_timeout", "silence_timeout"})
    add_setting_flag(command, session, name);
  std::vector<std::string> names;
  for (const TransportKind* kind : transport_kinds())
    if (joins_processes(*kind)) names.emplace_back(kind->name);
  if (!more.empty()) names.emplace_back(more);
  add_knob(command, network, flags->network)
      ->check(one_of_transports(names))
      ->type_name(fmt::format("{}", fmt::join(names, "|")));
  command
      .add_option("--mpirun-arg", flags->mpirun_arguments,
                  "one more argument for mpirun; repeat it for each (--mpirun-arg=--mca --mpirun-arg=...)")
      ->type_name("TEXT")
      ->expected(1)
      ->take_all();
  return flags;
}

void add_dry_run_flag(CLI::App& command, PlacingFlags& flags) {
  command.add_flag("--dry-run", flags.dry_run,
                   "print the command that would start the ranks, and start nothing");
}

Placing PlacingFlags::placing(const Settings& settings, const ProbedOver& over) const {
  Placing placing;
  placing.hosts = choose_hosts(settings, host_list);
  placing.network = network.empty() ? over.network.value_or(std::string(kDefaultNetwork)) : network;
  placing.subnet = settings.subnet;
  const TransportKind* kind = find_transport(placing.network);
  if (placing.subnet.empty() && kind != nullptr && kind->takes_subnet) placing.subnet = over.subnet;
  placing.network_options = settings.network_options;
  if (placing.network_options.empty() && placing.network == over.network)
    placing.network_options = over.network_options;
  placing.mpirun_arguments = mpirun_arguments;
  return placing;
}

Work::Work(const Session& session)
    : resolved_(session.resolve()),
      store_(open_store(resolved_.settings)),
      progress_(session.progress(resolved_.settings)),
      context_{resolved_.settings, session.environment, store_, *session.cancellation,
               Listener{[this](const Progressed& progress) {
                          progress_->show(progress.what, progress.fraction, progress.left);
                        },
                        [this, &session](std::string_view note) {
                          progress_->clear();
                          session.say(fmt::format("note: {}", note));
                        }}} {}

}  // namespace commtune::api
