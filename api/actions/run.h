#pragma once
// Replays a plan on its hosts and keeps what was measured, beside what was predicted.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/actions/context.h"
#include "executor/replay/run.h"
#include "executor/session/report.h"
#include "perfmodel/base/error.h"
#include "perfmodel/device_kind.h"
#include "perfmodel/plan.h"
#include "perfmodel/profile.h"
#include "store/rows.h"

namespace commtune::api {

/// A plan with all that is needed to run it.
struct PlannedJob {
  Plan plan;
  Profile profile;
  RowId plan_id = 0;    ///< in the store
  std::string cluster;  ///< name of the one it was made for; empty when unknown
  std::optional<RowId> cluster_id;
  Seconds predicted{};  ///< 0: nobody could predict it here
  Seconds bound{};
  ProbedOver over{};        ///< what it is to run over: the transport that the plan wants, where it wants one
  double link_rate = 0;     ///< of one message between its hosts, bytes per second; 0: unknown
  TransferTraits traits{};  ///< with which its cluster was probed; assumed where that is not known
  DeviceKind device = DeviceKind::kHost;  ///< in whose memory messages lay when its cluster was probed
  /// Of the fit that the prediction rests on; empty without one.
  std::map<std::string, std::string> fitted_facts{};
};

/// The same hosts, over what the plan wants, where it wants a transport.
Placing placing_for(Placing placing, const PlannedJob& job);

/// How a user names a plan.
struct PlanName {
  /// A path to a commtune/plan/1 file, a stored plan's id, at least 4 digits of its digest, or "latest": the
  /// one that was chosen last.
  std::string text;
  /// A model as in find_profile: whose times it runs with in place of those that it was made for, where both
  /// have the same layout. Needed for a file whose profile the store does not have.
  std::string profile;
  std::string cluster;  ///< predicts a file's plan, if this cluster has been probed
};

/// Finds it, stores it if it came from a file or runs with another profile's times, and checks it against its
/// profile.
///
/// methods  of the ranking that the named plan was chosen in: names, "chosen", "best" and "worst" by
///          prediction, "all"
/// in the
///          ranking's order; empty: the plan itself
/// throws   Error{kNotFound} or Error{kBadInput} naming what is missing or broken
std::vector<PlannedJob> find_jobs(Context& context, const PlanName& name,
                                  const std::vector<std::string>& methods);

/// What ran, in settings and answers: layers that slept and gradients that were made up. Times of a job that
/// trained are handed in (POST /v1/runs).
inline constexpr const char* kReplay = "replay";

struct RunRequest {
  PlannedJob job;
  Placing placing;
  RunOptions options;
  bool paced = true;    ///< send no faster than the links were measured to carry, where that is known
  bool strict = false;  ///< end the run where a fact of the hosts is not as when the fit was made
  /// Longest transfer: as asked for, else as the cluster was probed; 0: as the transport likes.
  Bytes chunk() const {
    return options.chunk.count != 0 || job.traits.assumed ? options.chunk : job.traits.chunk;
  }
};

struct RunOutcome {
  RowId run = 0;
  RunReport report;
  DeviceKind device = DeviceKind::kHost;  ///< what gradients lay on and layers ran on
  Seconds predicted{};
  std::vector<std::string> differences;  ///< facts of the hosts that were not so when the fit was made
  std::optional<Error> failure;  ///< why it has no report; its row, where it has one (run > 0), says so too
  /// predicted / measured - 1; nullopt without a prediction
  std::optional<double> error() const;
};

/// How a run ended, with its median and that one's 95 % interval.
///
/// seconds  of each timed iteration; may be empty
RunResult run_result(WorkState state, std::vector<double> seconds, std::string error);

/// Starts as many ranks as the plan is for and runs it; the run is in the store from its start, with its end
/// whatever that is.
///
/// throws  Error{kBadInput} when the hosts do not have exactly the ranks that the plan is for;
///         Error{kUnavailable} where its transport cannot be used there, with the next plan of its ranking
///         that goes over another one; Error{kConflict}, before the first iteration, for what `strict`
///         refuses; what launch() throws
RunOutcome run_job(Context& context, const RunRequest& request);

/// Runs several plans. Those of the same layout and workers over the same network run in one session, where
/// they take turns: ranks start once, as many as the plan with the most dedicated servers needs, and all
/// plans see the same minutes. Each has a run of its own in the store, with the session's name as `group` in
/// its settings, and a plan that is finished stays so whatever becomes of the others. Where a plan fails in
/// the middle, the session is started again for those that are not finished.
///
/// returns  by request; of those that could not be run, why
/// throws   Error{kBadInput} for requests that break a rule, before anything is started
std::vector<RunOutcome> run_jobs(Context& context, std::vector<RunRequest> requests);

nlohmann::json to_json(const RunOutcome& outcome);

}  // namespace commtune::api
