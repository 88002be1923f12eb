#include "api/actions/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "api/actions/plan_runs.h"
#include "perfmodel/base/error.h"

namespace commtune::api {
namespace {

constexpr int kWarmupOfVerification = 2;
/// Two more than it takes to tell anything.
constexpr int kRoundsWanted = 5;

/// Runs the plans of one answer in turn.
class Replays {
 public:
  Replays(const Context& context, const Placing& placing, RunSession& session, TuneOutcome& outcome)
      : outcome_(outcome),
        limits_(outcome.question.verify.value()),
        runs_(context, session,
              {placing, limits_.budget, outcome.question.strict, "verifying", kWarmupOfVerification}),
        iteration_(outcome.chosen().prediction.iteration) {}

  Seconds elapsed() const { return runs_.elapsed(); }

  std::vector<Seconds> run(const Plan& plan) {
    const int iterations = iterations_of_run(limits_, iteration_);
    const PlanRuns::Ran ran = runs_.run(outcome_.plans.at(plan.method), iterations);
    iteration_ = std::max(iteration_, ran.took / (iterations + kWarmupOfVerification));
    outcome_.runs[plan.method].push_back(ran.outcome.run);
    const std::vector<double>& seconds = ran.outcome.report.iteration_seconds;
    return {seconds.begin(), seconds.end()};
  }

 private:
  TuneOutcome& outcome_;
  const tuner::VerifyLimits limits_;
  PlanRuns runs_;
  Seconds iteration_;  ///< the longest so far, first as predicted
};

}  // namespace

int ranks_of_job(const tuner::TuneOptions& options, const Cluster& cluster) {
  return options.workers > 0 ? options.workers + options.limits.dedicated_servers : cluster.ranks();
}

void check_verification(const tuner::VerifyLimits& limits, const Placing& placing, int ranks_of_job) {
  limits.check();
  placing.check();
  const int offered = known_ranks(placing.hosts);
  if (offered == 0 || offered >= ranks_of_job) return;
  throw Error(
      ErrorCode::kBadInput,
      fmt::format("verify: the job has {} ranks, the hosts offer {}: name hosts with {} slots in all, "
                  "or ask for fewer workers",
                  ranks_of_job, offered, ranks_of_job));
}

int iterations_of_run(const tuner::VerifyLimits& limits, Seconds iteration) {
  return iterations_within(limits.budget / (kRoundsWanted * limits.plans), iteration, kWarmupOfVerification);
}

void verify_outcome(const Context& context, const Placing& placing, RunSession& session,
                    TuneOutcome& outcome) {
  Replays replays(context, placing, session, outcome);
  tuner::verify(outcome.answer,
                {*outcome.question.verify, [&](const Plan& plan) { return replays.run(plan); },
                 [&] { return replays.elapsed(); }});
}

}  // namespace commtune::api
