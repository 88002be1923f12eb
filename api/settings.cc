#include "api/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <iterator>
#include <optional>

#include "api/text.h"
#include "executor/base/ip_network.h"
#include "perfmodel/base/error.h"
#include "perfmodel/base/json_reader.h"

namespace commtune::api {
namespace {

constexpr std::string_view kFileVariable = "COMMTUNE_CONFIG";

bool set_path(std::filesystem::path& path, std::string_view text) {
  path = std::filesystem::path(text);
  return !text.empty();
}

bool set_duration(Seconds& value, std::string_view text) {
  try {
    value = parse_duration(text);
  } catch (const Error&) {
    return false;
  }
  return value.count() > 0 && value.count() <= 1e6;
}

/// Longer than a wait: days.
bool set_age(Seconds& value, std::string_view text) {
  try {
    value = parse_duration(text);
  } catch (const Error&) {
    return false;
  }
  return value.count() > 0;
}

bool set_local_ranks(Settings& settings, std::string_view text) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), settings.local_ranks);
  return error == std::errc{} && end == text.data() + text.size() && settings.local_ranks >= 1 &&
         settings.local_ranks <= 65'536;
}

bool set_subnet(Settings& settings, std::string_view text) {
  settings.subnet = text;
  return read_network(text).has_value();
}

bool set_progress(Settings& settings, std::string_view text) {
  if (text == "auto") settings.progress = ProgressMode::kAuto;
  if (text == "always") settings.progress = ProgressMode::kAlways;
  if (text == "never") settings.progress = ProgressMode::kNever;
  if (text == "json") settings.progress = ProgressMode::kJson;
  return text == "auto" || text == "always" || text == "never" || text == "json";
}

bool set_text(std::string& value, std::string_view text) {
  value = text;
  return !text.empty();
}

constexpr std::string_view kDurationRule = "a duration with its unit, such as 60s or 5min";

constexpr std::array kRows = {
    SettingRow{"db", "--db", "COMMTUNE_DB", "a path, or :memory:", "database that keeps what was measured",
               [](Settings& s, std::string_view text) { return set_path(s.database, text); }},
    SettingRow{"cluster", "--cluster", "COMMTUNE_CLUSTER", "a name", "cluster of commands that name none",
               [](Settings& s, std::string_view text) { return set_text(s.cluster, text); }},
    SettingRow{"hosts", "--hosts", "COMMTUNE_HOSTS", "a path", "Open MPI hostfile; unset: this machine",
               [](Settings& s, std::string_view text) { return set_path(s.hosts, text); }},
    SettingRow{"local_ranks", "--local", "COMMTUNE_LOCAL_RANKS", "a whole number from 1 to 65536",
               "ranks on this machine when no hosts are named", set_local_ranks},
    SettingRow{"subnet", "--subnet", "COMMTUNE_SUBNET", "a network such as 10.0.0.0/24 or fd00::/64",
               "network whose addresses the ranks' sockets use; unset: any that both ends share", set_subnet},
    SettingRow{"network_options", "--network-options", "COMMTUNE_NETWORK_OPTIONS",
               "KEY=VALUE,... that the network knows, such as device=mlx5_0,connections=2",
               "more for the network; verbs takes device, gid-index, connections and relaxed-ordering",
               [](Settings& s, std::string_view text) { return set_text(s.network_options, text); }},
    SettingRow{"mpirun", "--mpirun", "COMMTUNE_MPIRUN", "a program", "Open MPI's launcher, or Slurm's srun",
               [](Settings& s, std::string_view text) { return set_text(s.mpirun, text); }},
    SettingRow{"rank_program", "--rank-program", "COMMTUNE_RANK_PROGRAM", "a path, the same on every host",
               "what mpirun starts on every host",
               [](Settings& s, std::string_view text) { return set_path(s.rank_program, text); }},
    SettingRow{"start_timeout", "--start-timeout", "COMMTUNE_START_TIMEOUT", kDurationRule,
               "longest wait for all ranks to start",
               [](Settings& s, std::string_view text) { return set_duration(s.start_timeout, text); }},
    SettingRow{"silence_timeout", "--silence-timeout", "COMMTUNE_SILENCE_TIMEOUT", kDurationRule,
               "longest silence of the ranks before they are given up",
               [](Settings& s, std::string_view text) { return set_duration(s.silence_timeout, text); }},
    SettingRow{"fit_age", "--fit-age", "COMMTUNE_FIT_AGE", "a duration of at most 1000d, such as 30d or 12h",
               "age from which fits are marked as stale",
               [](Settings& s, std::string_view text) { return set_age(s.fit_age, text); }},
    SettingRow{
        "progress", "--progress", "COMMTUNE_PROGRESS", "auto, always, never or json",
        "progress on standard error; auto: a bar on a terminal, lines elsewhere; json: an object a line",
        set_progress},
};

std::filesystem::path xdg(const Environment& environment, std::string_view variable,
                          const std::filesystem::path& under_home) {
  const std::string_view given = lookup(environment, variable);
  // The specification tells programs to ignore a relative path here.
  if (given.starts_with('/')) return std::filesystem::path(given);
  const std::string_view home = lookup(environment, "HOME");
  return std::filesystem::path(home.empty() ? "/" : home) / under_home;
}

std::string default_text(const SettingRow& row, const SettingSources& sources) {
  if (row.name == "db")
    return (xdg(sources.environment, "XDG_DATA_HOME", ".local/share") / "commtune" / "commtune.db").string();
  if (row.name == "cluster") return "local";
  if (row.name == "local_ranks") return "4";
  if (row.name == "mpirun") return "mpirun";
  if (row.name == "rank_program") return (sources.program.parent_path() / "tune-rank").string();
  if (row.name == "start_timeout") return "60s";
  if (row.name == "silence_timeout") return "5min";
  if (row.name == "fit_age") return "30d";
  if (row.name == "progress") return "auto";
  return {};
}

/// The settings file as name -> text.
std::map<std::string, std::string, std::less<>> read_file(const std::filesystem::path& path) {
  std::ifstream in(path);
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (in.bad()) throw Error(ErrorCode::kBadInput, fmt::format("{}: cannot be read", path.string()));
  const nlohmann::json document = parse_json(text, path.string());
  if (!document.is_object())
    throw Error(ErrorCode::kBadInput, fmt::format("{}: expected an object of settings", path.string()));
  std::map<std::string, std::string, std::less<>> values;
  std::vector<std::string_view> known;
  known.reserve(std::size(kRows));
  for (const SettingRow& row : kRows) known.push_back(row.name);
  for (const auto& [name, value] : document.items()) {
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw Error(ErrorCode::kBadInput, fmt::format("{}: unknown setting \"{}\"{}", path.string(), name,
                                                    did_you_mean(name, known)));
    if (!value.is_string() && !value.is_number_integer())
      throw Error(ErrorCode::kBadInput, fmt::format("{}: {}: expected a text or a whole number, got {}",
                                                    path.string(), name, value.dump()));
    values[name] = value.is_string() ? value.get<std::string>() : value.dump();
  }
  return values;
}

std::vector<std::string> unread_variables(const Environment& environment) {
  std::vector<std::string_view> known{kFileVariable};
  for (const SettingRow& row : kRows) known.push_back(row.variable);
  std::vector<std::string> warnings;
  for (auto it = environment.lower_bound("COMMTUNE_"); it != environment.end(); ++it) {
    if (!it->first.starts_with("COMMTUNE_")) break;
    if (std::find(known.begin(), known.end(), it->first) == known.end())
      warnings.push_back(
          fmt::format("{} is set but nothing reads it{}", it->first, did_you_mean(it->first, known)));
  }
  return warnings;
}

std::filesystem::path settings_file(const SettingSources& sources) {
  if (!sources.file.empty()) return sources.file;
  const std::string_view named = lookup(sources.environment, kFileVariable);
  if (!named.empty()) return std::filesystem::path(named);
  return xdg(sources.environment, "XDG_CONFIG_HOME", ".config") / "commtune" / "config.json";
}

}  // namespace

std::string_view lookup(const Environment& environment, std::string_view variable) {
  const auto found = environment.find(variable);
  return found == environment.end() ? std::string_view{} : std::string_view(found->second);
}

std::span<const SettingRow> setting_rows() { return kRows; }

ResolvedSettings resolve_settings(const SettingSources& sources) {
  ResolvedSettings resolved;
  resolved.file = settings_file(sources);
  resolved.file_exists = std::filesystem::exists(resolved.file);
  const bool named = !sources.file.empty() || !lookup(sources.environment, kFileVariable).empty();
  if (named && !resolved.file_exists)
    throw Error(ErrorCode::kNotFound,
                fmt::format("settings file {}: does not exist", resolved.file.string()));
  std::map<std::string, std::string, std::less<>> in_file;
  if (resolved.file_exists) in_file = read_file(resolved.file);

  for (const SettingRow& row : kRows) {
    ResolvedSetting origin{&row, default_text(row, sources), "default"};
    bool given = true;
    if (const auto flag = sources.flags.find(row.name); flag != sources.flags.end()) {
      origin = {&row, flag->second, std::string(row.flag)};
    } else if (const std::string_view value = lookup(sources.environment, row.variable); !value.empty()) {
      origin = {&row, std::string(value), std::string(row.variable)};
    } else if (const auto entry = in_file.find(row.name); entry != in_file.end()) {
      origin = {&row, entry->second, resolved.file.string()};
    } else {
      given = false;
    }
    if (given || !origin.value.empty()) {
      if (!row.set(resolved.settings, origin.value))
        throw Error(ErrorCode::kBadInput,
                    fmt::format("{}{} = \"{}\": must be {}", origin.source,
                                origin.source == row.flag || origin.source == row.variable
                                    ? std::string{}
                                    : fmt::format(": {}", row.name),
                                origin.value, row.rule));
    }
    resolved.origins.push_back(std::move(origin));
  }
  resolved.warnings = unread_variables(sources.environment);
  return resolved;
}

nlohmann::json to_json(const ResolvedSettings& resolved) {
  nlohmann::json rows = nlohmann::json::array();
  for (const ResolvedSetting& origin : resolved.origins)
    rows.push_back({{"name", origin.row->name},
                    {"value", origin.value},
                    {"source", origin.source},
                    {"flag", origin.row->flag},
                    {"variable", origin.row->variable},
                    {"rule", origin.row->rule},
                    {"what", origin.row->what}});
  return {{"settings", std::move(rows)},
          {"file", resolved.file.string()},
          {"file_exists", resolved.file_exists},
          {"warnings", resolved.warnings}};
}

}  // namespace commtune::api
