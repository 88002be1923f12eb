#pragma once
// What runs of plans have in common, whether they run alone or with others: which of them may share a
// session, and each one's row in the store.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "api/actions/context.h"
#include "api/actions/run.h"
#include "executor/session/report.h"
#include "perfmodel/base/error.h"
#include "perfmodel/base/units.h"
#include "probes/host/fact_differences.h"

namespace commtune::api {

/// Bytes per second that a connection may send at; 0: no limit.
double pace_of(const RunRequest& request);

/// Whether two plans may run in one session.
bool share_a_session(const RunRequest& a, const RunRequest& b);

/// What rank 0 says of the hosts of a run. Throws Error{kBadInput} for what is something else.
probes::Facts facts_from_json(const nlohmann::json& value);

/// One run's row in the store, from its start to its end.
class RunRecord {
 public:
  /// The run begins.
  ///
  /// context, request  outlive this
  /// group             of runs in one session; empty: it runs alone
  RunRecord(Context& context, const RunRequest& request, const std::string& group);

  /// Before the first iteration: what the hosts are like. A run's own settings say nothing about the cluster,
  /// so they are compared and not kept.
  ///
  /// throws  Error{kConflict} for a difference, where the request is strict
  void compare(const probes::Facts& seen);
  /// A timed iteration, as far as it was heard of.
  void add(Seconds iteration) { iterations_.push_back(iteration.count()); }
  /// What was heard of counts no more: the run begins again.
  void start_again() { iterations_.clear(); }
  void finish(RunReport report);
  void fail(const Error& error);

  const RunOutcome& outcome() const { return outcome_; }

 private:
  Context& context_;
  const RunRequest& request_;
  RunOutcome outcome_;
  std::vector<double> iterations_;  // seconds
};

/// What the hosts of a run have that was different when the fit was made that its prediction rests on: a line
/// for its reader.
std::string difference_note(const std::string& difference);

}  // namespace commtune::api
