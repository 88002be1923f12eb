#pragma once
// Verified tuning: the plans of an answer that its doubt cannot tell apart are replayed, and the measurement
// chooses (tuner/verify.h). The runs are stored as those of `tune run` are.

#include "api/actions/context.h"
#include "api/actions/run_session.h"
#include "api/question/answer.h"
#include "perfmodel/cluster.h"
#include "tuner/tuner.h"
#include "tuner/verify.h"

namespace commtune::api {

/// Of workers and dedicated servers together.
int ranks_of_job(const tuner::TuneOptions& options, const Cluster& cluster);

/// Throws Error{kBadInput} for limits or a placing that break a rule, and for hosts that have not the ranks
/// of the job.
void check_verification(const tuner::VerifyLimits& limits, const Placing& placing, int ranks_of_job);

/// Iterations of one run that let a few rounds fit into the budget, but no fewer than tell anything, and no
/// more than tell more.
///
/// iteration  how long one takes, with its share of what a run takes beside them, but for the ranks' start
int iterations_of_run(const tuner::VerifyLimits& limits, Seconds iteration);

/// Verifies outcome.answer, whose plans are all stored, as its question says, and fills in outcome.runs.
/// Throws what tuner::verify does.
///
/// placing  with at least the job's ranks; a plan for fewer runs on the first of them
/// session  where the plans run
void verify_outcome(const Context& context, const Placing& placing, RunSession& session,
                    TuneOutcome& outcome);

}  // namespace commtune::api
