#pragma once
// The way in: every rank of a job calls run_plan with its transport, the same plan and the same profile, or
// run_plans with several plans, which take turns, or which only rank 0 knows, one after the other.

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "executor/roads/road.h"
#include "executor/session/adoption.h"
#include "executor/session/report.h"
#include "executor/transport/transport.h"
#include "perfmodel/base/units.h"
#include "perfmodel/device_kind.h"
#include "perfmodel/plan.h"
#include "perfmodel/profile.h"

namespace commtune {

struct RunOptions {
  int iterations = 20;       ///< timed
  int warmup = 3;            ///< before them, not reported
  int check_iterations = 1;  ///< before those: every element of every tensor compared with a serial reference
  Result result = Result::kMean;
  Seconds timeout{60.0};  ///< longest wait for any one message, or for the ranks to agree, before giving up
  Bytes chunk;            ///< longest transfer; 0: as the transport likes
  std::string trace_directory;  ///< a Chrome trace per rank (rank0.json, ...) is written here, and on rank
                                ///< 0 all of them in one (all_ranks.json); empty: none
  int trace_steps = 3;          ///< timed iterations that the trace holds (the first ones)
  DeviceKind device = DeviceKind::kHost;  ///< what gradients lie on and layers run on
  void check() const;                     ///< throws Error{kBadInput} naming field, value and rule
};

struct RunProgress {
  enum class Phase { kAgreeing, kChecking, kWarming, kTiming } phase = Phase::kAgreeing;
  int done = 0, total = 0;  ///< iterations of this phase
  std::size_t plan = 0;     ///< of those that take turns: its place in the list
};

/// Runs a replay of the profile under the plan: layers last as long as the profile says, gradients of the
/// real sizes really travel. Ranks 0..workers-1 train; further ranks are the plan's dedicated servers. Starts
/// one thread, the communication thread, which alone uses the transport until the call returns.
///
/// progress   called on the calling thread after each iteration, on every worker; may be empty; if it throws,
///            the run ends with that exception here and Error{kPeerLost} on the others
/// returns    on rank 0 the whole report, elsewhere this rank's part
/// throws     PlanRefused{kBadInput} for a plan that does not fit the profile or the number of ranks,
///            Error{kConflict} when ranks disagree about plan, profile or options (on all ranks, same text),
///            (both before anything is under way: the transport is as good as before),
///            Error{kTimeout} or Error{kPeerLost} naming host, rank, tensor and stage waited for
RunReport run_plan(Transport& transport, const Plan& plan, const Profile& profile,
                   const RunOptions& options = {},
                   const std::function<void(const RunProgress&)>& progress = {});

/// A plan among others. Iterations of its options are those of all its turns together.
struct PlannedRun {
  Plan plan;
  RunOptions options;
};

/// What is said of plans that run in one session; each may be empty. Called on the calling thread.
struct PlanEvents {
  std::function<void(const RunProgress&)> progress;                  ///< as run_plan's
  std::function<void(std::size_t plan, RunReport report)> finished;  ///< on every rank, as run_plan's report
  /// On every rank: this plan does not run, the others do.
  std::function<void(std::size_t plan, const Refusal& refusal)> refused;
};

/// Plans of one layout and one number of workers, which run in one session.
struct TurnOptions : PlanEvents {
  /// A B C A B C ...: so often each plan has a turn, so that all of them see the same minutes. No more than
  /// any plan has iterations.
  int rounds = 1;
};

/// Runs several plans as run_plan runs one. Ranks that a plan does not need are idle under it. Of the second
/// turn on a plan warms up for one iteration only, since its messages' sizes are all that it has to learn
/// again.
///
/// throws  what run_plan throws, but for PlanRefused
void run_plans(Transport& transport, std::span<const PlannedRun> plans, const Profile& profile,
               const TurnOptions& options);

/// Plans of which nobody knows the next one before the one before it has ended, numbered from 0. All members
/// but `next` and the events are the same on all ranks.
struct PlanSource : PlanEvents {
  int workers = 1;  ///< of every plan; the ranks behind them are its dedicated servers, or idle under it
  Result result = Result::kMean;
  Seconds timeout{60.0};
  Bytes chunk;
  DeviceKind device = DeviceKind::kHost;
  /// On rank 0, whose ranks meanwhile wait for as long as it takes: the next plan, with `result`, `timeout`,
  /// `chunk` and `device` as above; nothing: the session ends. If it throws, so does run_plans, as for
  /// `progress`.
  std::function<std::optional<PlannedRun>()> next;
};

/// Runs them in one session, each from its first iteration to its report. A plan that suits none of this, or
/// needs more ranks than there are, is refused; the next one may come all the same.
///
/// throws  as above
void run_plans(Transport& transport, const PlanSource& source, const Profile& profile);

}  // namespace commtune
