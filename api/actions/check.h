#pragma once
// Runs the leading plans before an answer is given, and corrects their roads' costs (tuner/check.h). The runs
// are stored as those of `tune run` are, what they told as samples of the probe, and the corrected costs as a
// new fit.

#include "api/actions/context.h"
#include "api/actions/run_session.h"
#include "api/question/answer.h"
#include "perfmodel/cluster.h"
#include "perfmodel/plan.h"
#include "tuner/check.h"

namespace commtune::api {

/// Iterations of a run that is to last about so long.
///
/// iteration  how long one takes
/// aside      what a run takes besides
int iterations_of_check(Seconds share, Seconds iteration, Seconds aside);

/// Checks outcome.answer for as long as its question says. Where runs told anything of the costs,
/// outcome.made has the corrected ones and outcome.fit is the new fit; none where the cluster was given, or
/// where another fit has come since.
///
/// placing  with at least the job's ranks; a plan for fewer runs on the first of them
/// session  where the plans run
/// plan     answers the question on a cluster, choosing among plans on these roads (none: on all)
/// throws   what tuner::check does
void check_outcome(const Context& context, const Placing& placing, RunSession& session,
                   const decltype(tuner::CheckOptions::plan)& plan, TuneOutcome& outcome);

}  // namespace commtune::api
