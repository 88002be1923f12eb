#pragma once
// One call of `tune`: what was said on its command line, and the ways to answer.

#include <CLI/CLI.hpp>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "api/actions/context.h"
#include "api/launch/cancellation.h"
#include "api/options.h"
#include "api/output/progress.h"
#include "api/settings.h"

namespace commtune::api {

/// Filled in by the parser, then asked by the command that was named.
struct Session {
  Environment environment;
  std::filesystem::path program;  ///< of this process
  Cancellation* cancellation = nullptr;

  std::map<std::string, std::string, std::less<>> flags;  ///< settings given as flags: row name -> text
  std::string settings_file;                              ///< --config
  bool json = false;
  std::function<void()> action;   ///< of the command that was named
  mutable bool answered = false;  ///< a JSON document was printed: a failure after it adds none

  ResolvedSettings resolve() const;

  void print(std::string_view text) const;  ///< to standard output; Error{kStorage} when it is full
  void print_json(const nlohmann::json& document) const;  ///< the same, indented
  void say(std::string_view line) const;                  ///< a line for people, to standard error

  std::unique_ptr<Progress> progress(const Settings& settings) const;
};

/// Adds --db, --config, --json, --progress and the named settings' flags. The session must outlive the app.
void add_common_flags(CLI::App& command, Session& session, std::initializer_list<std::string_view> settings);

/// How commands that start ranks are told where.
struct PlacingFlags {
  std::string host_list;  ///< -H
  std::string network;    ///< --network; empty: not said
  std::vector<std::string> mpirun_arguments;
  bool dry_run = false;  ///< --dry-run: print the launch command instead

  /// Hosts from the list, the settings or this machine.
  ///
  /// over  what to use where the network, or its subnet, is not said
  Placing placing(const Settings& settings, const ProbedOver& over = {}) const;
};
/// Adds -H, --hosts, --local, --mpirun-arg, the launcher's settings, and the flag of the transport.
///
/// network  its knob: --network
/// more     a word that it takes beside the names of transports; empty: none
std::shared_ptr<PlacingFlags> add_placing_flags(CLI::App& command, Session& session,
                                                const Knob& network = knob::kNetwork,
                                                std::string_view more = {});
void add_dry_run_flag(CLI::App& command, PlacingFlags& flags);

/// Settings, store, progress and notes of one command, made when it runs.
class Work {
 public:
  explicit Work(const Session& session);

  const Settings& settings() const { return resolved_.settings; }
  Store& store() { return store_; }
  Context& context() { return context_; }
  /// Takes the progress bar away before something is printed.
  void clear_progress() { progress_->clear(); }

 private:
  ResolvedSettings resolved_;
  Store store_;
  std::unique_ptr<Progress> progress_;
  Context context_;
};

/// Text of a flag as a duration, size or rate: what parse() throws names the flag.
template <typename Parse>
auto parse_flag(std::string_view flag, const std::string& text, const Parse& parse) -> decltype(parse(text)) {
  try {
    return parse(text);
  } catch (const Error& error) {
    throw Error(error.code(), std::string(flag) + ": " + error.what());
  }
}

}  // namespace commtune::api
