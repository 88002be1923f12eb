#pragma once
// What every action works with, whoever asked for it: the command line or the service.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/launch/cancellation.h"
#include "api/launch/launcher.h"
#include "api/settings.h"
#include "api/wire/order.h"
#include "store/store.h"

namespace commtune::api {

/// Who asked is told what is going on. Called from the action's own thread; either may be empty.
struct Listener {
  std::function<void(const Progressed&)> progress;
  std::function<void(std::string_view)> note;  ///< a choice that was made, worth a line
};

/// One action at a time; owned by who asked.
struct Context {
  const Settings& settings;
  const Environment& environment;
  Store& store;
  Cancellation& cancellation;
  Listener listener;

  void progress(const Progressed& progress) const {
    if (listener.progress) listener.progress(progress);
  }
  void note(std::string_view text) const {
    if (listener.note) listener.note(text);
  }
};

/// Where and how ranks are started.
struct Placing {
  HostList hosts;
  std::string network{kDefaultNetwork};  ///< name of a transport
  std::string subnet;                    ///< TransportOptions::subnet; empty: any
  std::string network_options;           ///< TransportOptions::own
  std::vector<std::string> mpirun_arguments;

  /// Throws Error{kUnavailable} for a network that this program does not have, Error{kBadInput} for a subnet
  /// or options that it does not take.
  void check() const;
};

/// What carried the messages of a cluster's probe: its plans are to run over the same.
struct ProbedOver {
  std::optional<std::string> network;  ///< absent: nobody knows
  std::string subnet;                  ///< of its networks; empty: any
  std::string network_options{};       ///< TransportOptions::own
  bool operator==(const ProbedOver&) const = default;
};
/// transport, facts  a cluster's
ProbedOver probed_over(std::string_view transport, const std::map<std::string, std::string>& facts);

/// Hosts as the user named them: the list (`h1:4,h2:4`) if there is one, else the settings' hostfile, else
/// this machine with `local_ranks` ranks. Throws Error{kNotFound} for a hostfile that does not exist,
/// Error{kBadInput} for one that is malformed.
HostList choose_hosts(const Settings& settings, std::string_view list);

/// The database of the settings, made if it is new; what a killed process left as running there is ended.
/// Throws Error{kStorage}.
Store open_store(const Settings& settings);

/// What launch() needs to start `ranks` ranks (0: one a slot).
LaunchOptions launch_options(const Context& context, const Placing& placing, int ranks);

/// Open MPI's settings in the environment (OMPI_MCA_*) and on mpirun's command line, the subnet, and the
/// network's own options: they change what is measured, so they belong to a cluster's fingerprint.
std::map<std::string, std::string> transport_settings(const Context& context, const Placing& placing);

/// Notes that belong to a placing, said once.
void say_notes(const Context& context, const HostList& hosts);

}  // namespace commtune::api
