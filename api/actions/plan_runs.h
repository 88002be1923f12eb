#pragma once
// Runs of the plans of one answer, as a check and a verification need them.

#include <chrono>
#include <functional>
#include <set>
#include <string>

#include "api/actions/context.h"
#include "api/actions/run.h"
#include "api/actions/run_session.h"

namespace commtune::api {

/// Runs stored plans, one at a time, on the first ranks of the same hosts, in one session. Each run is stored
/// as those of `tune run` are; what every run says is passed on once.
class PlanRuns {
 public:
  struct Setup {
    Placing placing;      ///< with at least the job's ranks
    Seconds budget{};     ///< of all runs: what progress is told against
    bool strict = false;  ///< RunRequest::strict
    std::string doing;    ///< "checking": begins each line of progress
    int warmup = 1;
  };
  /// context, session  must outlive this object
  PlanRuns(const Context& context, RunSession& session, Setup setup);
  PlanRuns(const PlanRuns&) = delete;
  PlanRuns& operator=(const PlanRuns&) = delete;

  Seconds elapsed() const { return std::chrono::steady_clock::now() - begin_; }

  struct Ran {
    RunOutcome outcome;
    Seconds took{};  ///< with warm-up, without the start of ranks that were not there yet
  };
  /// plan        a stored one's id
  /// iterations  timed ones
  /// throws      what run_job throws
  Ran run(RowId plan, int iterations);

 private:
  void show(const std::string& method, const Progressed& run) const;

  const Setup setup_;
  const std::chrono::steady_clock::time_point begin_;
  const Listener listener_;  ///< the caller's
  std::set<std::string> said_;
  RunSession& session_;
  Context context_;  ///< the caller's, with a listener of ours
};

/// Timed iterations of a run that is to last about so long: no fewer than tell anything, and no more than
/// tell more.
///
/// time  for the run, with its warm-up and without its launch
int iterations_within(Seconds time, Seconds iteration, int warmup);

}  // namespace commtune::api
