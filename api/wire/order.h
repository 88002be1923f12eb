#pragma once
// What the ranks are told to do: one JSON object, handed to rank 0, which tells the others. Format
// "commtune/order/1".
//
// A session's ranks run plans that nobody knows beforehand. After its order rank 0 reads a line a plan, each
// when it has reported of the one before, and a last one that ends the session:
//
//   {"format":"commtune/order/1","order":"session","network":"tcp","workers":4,"profile":{...},...}
//   {"format":"commtune/order/1","order":"plan","plan":{...},"options":{...}}
//   {"format":"commtune/order/1","order":"end"}

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "executor/replay/run.h"
#include "perfmodel/profile.h"
#include "probes/options.h"

namespace commtune::api {

/// Which transport carries the messages where nobody says: sockets of our own. Between hosts at 1 Gb/s a ring
/// takes 1.00 times what its bytes need (25.6 MB) where Open MPI takes 1.06 to 1.16 times, half as long at 1
/// MiB, and half the processor time; measured side by side.
inline constexpr std::string_view kDefaultNetwork = "tcp";

struct ProbeOrder {
  std::string network{kDefaultNetwork};  ///< name of a transport, which the ranks look for in their registry
  probes::ProbeOptions options;
  /// Samples of an earlier probe to go on from, if the cluster still has this fingerprint.
  std::string earlier_fingerprint;
  std::vector<probes::ProbeSample> earlier;
  bool compare = false;           ///< run what people already trust on the same link first
  std::string subnet;             ///< TransportOptions::subnet
  std::string network_options{};  ///< TransportOptions::own
  std::vector<Profile> profiles;  ///< whose plans decide what is refined; empty: nobody's
};

struct RunOrder {
  std::string network{kDefaultNetwork};
  std::vector<PlannedRun> plans;  ///< they take turns in one session
  Profile profile;
  int rounds = 1;                 ///< TurnOptions::rounds
  double pace = 0;                ///< TransportOptions::pace
  std::string subnet;             ///< TransportOptions::subnet
  std::string network_options{};  ///< TransportOptions::own
};

/// PlanSource's members; the plans come in lines of their own.
struct SessionOrder {
  std::string network{kDefaultNetwork};
  int workers = 1;
  Profile profile;
  Result result = Result::kMean;
  Seconds timeout{60.0};
  Bytes chunk;
  DeviceKind device = DeviceKind::kHost;
  double pace = 0;                ///< TransportOptions::pace
  std::string subnet;             ///< TransportOptions::subnet
  std::string network_options{};  ///< TransportOptions::own
};

using Order = std::variant<ProbeOrder, RunOrder, SessionOrder>;

nlohmann::json to_json(const Order& order);

/// Throws Error{kBadInput} with the place and the rule.
Order order_from_json(const nlohmann::json& json);

/// A line of a session: its next plan, or nothing, which ends it.
nlohmann::json next_plan_to_json(const std::optional<PlannedRun>& next);
/// Throws as above.
std::optional<PlannedRun> next_plan_from_json(const nlohmann::json& json);

/// The settings of a run or a probe as they are stored beside its results (without plan, profile, samples).
nlohmann::json settings_of(const RunOptions& options);
nlohmann::json settings_of(const probes::ProbeOptions& options);

}  // namespace commtune::api
