#pragma once
// Verified tuning: the plans of an answer that its doubt cannot tell apart are replayed, and the measurement
// chooses (tuner/verify.h). The runs are stored as those of `tune run` are.

#include "api/actions/context.h"
#include "perfmodel/cluster.h"
#include "tuner/tuner.h"
#include "tuner/verify.h"

namespace commtune::api {

struct TuneRequest;
struct TuneOutcome;

struct VerifyRequest {
  tuner::VerifyLimits limits;
  Placing placing;  ///< with at least the job's ranks; a plan for fewer runs on the first of them
};

/// Of workers and dedicated servers together.
int ranks_of_job(const tuner::TuneOptions& options, const Cluster& cluster);

/// Throws Error{kBadInput} for limits or a placing that break a rule, and for hosts that have not the ranks
/// of the job.
void check(const VerifyRequest& request, int ranks_of_job);

/// Iterations of one run that let a few rounds fit into the budget, but no fewer than tell anything, and no
/// more than tell more.
///
/// iteration  how long one takes, with its share of what a run takes beside them
int iterations_of_run(const tuner::VerifyLimits& limits, Seconds iteration);

/// Verifies outcome.answer, whose plans are all stored, as request.verify says, and fills in outcome.runs.
/// Throws what tuner::verify does.
void verify_outcome(const Context& context, const TuneRequest& request, TuneOutcome& outcome);

}  // namespace commtune::api
