#pragma once
// What a user may set once for all commands: flags, then COMMTUNE_* variables, then a file, then the default.

#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "perfmodel/base/units.h"

namespace commtune::api {

/// The process's environment, read once by main().
using Environment = std::map<std::string, std::string, std::less<>>;

/// The value, or "" when it is unset.
std::string_view lookup(const Environment& environment, std::string_view variable);

enum class ProgressMode { kAuto, kAlways, kNever, kJson };

struct Settings {
  std::filesystem::path database;      ///< ":memory:" or a file
  std::string cluster;                 ///< of commands that name none
  std::filesystem::path hosts;         ///< hostfile of commands that name none; empty: this machine
  int local_ranks = 0;                 ///< on this machine, when no hosts are named
  std::string subnet;                  ///< TransportOptions::subnet
  std::string network_options;         ///< TransportOptions::own
  std::string mpirun;                  ///< the program, looked up in PATH unless it has a slash
  std::filesystem::path rank_program;  ///< what mpirun starts on every host
  Seconds start_timeout{};
  Seconds silence_timeout{};
  Seconds fit_age{};  ///< from which fits are marked
  ProgressMode progress = ProgressMode::kAuto;
};

/// One line of the table that everything about a setting is printed from.
struct SettingRow {
  std::string_view name;                                   ///< in the file: "local_ranks"
  std::string_view flag;                                   ///< "--local"; empty: no flag
  std::string_view variable;                               ///< "COMMTUNE_LOCAL_RANKS"
  std::string_view rule;                                   ///< "a whole number from 1 to 65536"
  std::string_view what;                                   ///< one line
  bool (*set)(Settings& settings, std::string_view text);  ///< false: the text breaks the rule
};

std::span<const SettingRow> setting_rows();

/// Where a value came from.
struct ResolvedSetting {
  const SettingRow* row = nullptr;
  std::string value;
  /// "--local", "COMMTUNE_LOCAL_RANKS", "/home/u/.config/commtune/config.json", "default"
  std::string source;
};

struct ResolvedSettings {
  Settings settings;
  std::vector<ResolvedSetting> origins;  ///< one per row, in the table's order
  std::filesystem::path file;            ///< the settings file that was looked for
  bool file_exists = false;
  std::vector<std::string> warnings;  ///< COMMTUNE_ variables that nothing reads
};

/// What the settings are made from.
struct SettingSources {
  std::map<std::string, std::string, std::less<>> flags;  ///< name of the row -> text, only those given
  Environment environment;
  std::filesystem::path file;     ///< --config or COMMTUNE_CONFIG; empty: the XDG configuration directory's
  std::filesystem::path program;  ///< of this process; the rank program's default is beside it
};

/// Throws Error{kBadInput} naming the flag, variable or file with the value and the rule; Error{kNotFound}
/// when a file was named and does not exist. An unset or empty variable has no effect.
ResolvedSettings resolve_settings(const SettingSources& sources);

nlohmann::json to_json(const ResolvedSettings& resolved);

}  // namespace commtune::api
