#pragma once
// Measures a cluster and keeps all of it: samples as they come, then the fit.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/actions/context.h"
#include "perfmodel/cluster.h"
#include "probes/options.h"
#include "probes/tools/comparison.h"
#include "store/rows.h"

namespace commtune::api {

struct ProbeRequest {
  std::string cluster;  ///< its name in the store
  Placing placing;
  probes::ProbeOptions options;  ///< name, models and transport settings are filled in
  /// Whose plans decide what is refined, as a user calls them (question/models.h); empty: all roads count
  /// alike.
  std::vector<std::string> models;
  bool fresh = false;    ///< do not go on from an interrupted probe's samples
  bool compare = false;  ///< other tools beside it, on the link between the first two hosts
};

// clang-tidy takes json's checked moves for throwing ones. NOLINTNEXTLINE(bugprone-exception-escape)
struct ProbeOutcome {
  RowId cluster_id = 0, session = 0, fit = 0;
  Cluster cluster;
  nlohmann::json links;  ///< probes::LinkReport as JSON
  /// False: the time or traffic was spent before every size was narrow, or the choice certain.
  bool within_budget = true;
  std::vector<std::string> would_measure;  ///< with more budget
  std::vector<std::string> notes;
  Seconds elapsed{};
  /// What the time went into, {"survey_seconds", "links_seconds", "first_sizes_seconds",
  /// "refinement_seconds", "planning_seconds", "rest_seconds"}; empty where the ranks do not say.
  nlohmann::json budget_split = nlohmann::json::object();
  Bytes traffic;
  int resumed_samples = 0;                ///< taken over from an interrupted probe
  std::vector<probes::ToolResult> tools;  ///< what was to be compared with
};

/// Probes the hosts, stores each sample within a second of its measurement, then stores the fit.
///
/// throws  Error{kInterrupted} after Ctrl-C: the samples stay, and the next probe of the same cluster goes on
///         from them; Error{kConflict} when a probe of this cluster is running; and what launch() throws.
///         The session says how it ended in each case.
ProbeOutcome probe_cluster(Context& context, const ProbeRequest& request);

/// What came of probes over all transports that work on all hosts.
struct TransportProbes {               // NOLINT(bugprone-exception-escape): as above
  std::vector<ProbeOutcome> outcomes;  ///< at least one; the last is over what is used where nobody says
  struct Refused {
    std::string transport, why;
  };
  std::vector<Refused> unusable;
};

/// Probes the same hosts over one transport of this program after the other, each for an equal part of the
/// budget that is left, and of the traffic, if the request has any. One that cannot be used there is left
/// out.
///
/// request  its placing's network is not looked at, and its subnet only by transports that take one
/// throws   what probe_cluster throws, over transports that cannot be used only where there is no other
TransportProbes probe_all_transports(Context& context, const ProbeRequest& request);

/// For requests: a transport's name, or "auto". Throws Error{kBadInput} for any other text.
void check_probed_over(std::string_view transport);

/// Why nothing stands beside what was found, although tools were to be compared with: each reason once, with
/// its tool. nullopt where some tool has a result or none was asked for.
std::optional<std::string> not_compared(const ProbeOutcome& outcome);

nlohmann::json to_json(const ProbeOutcome& outcome);
/// The last outcome's, with the others and those that could not be used beside it.
nlohmann::json to_json(const TransportProbes& probes);

}  // namespace commtune::api
