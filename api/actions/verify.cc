#include "api/actions/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <vector>

#include "api/actions/run.h"
#include "api/actions/tune.h"
#include "perfmodel/error.h"

namespace commtune::api {
namespace {

constexpr int kWarmup = 2, kLeastIterations = 3, kMostIterations = 20;
/// Two more than it takes to tell anything.
constexpr int kRoundsWanted = 5;

/// Runs the plans of one answer, one at a time.
class Replays {
 public:
  Replays(const Context& context, const TuneRequest& request, TuneOutcome& outcome)
      : request_(request),
        outcome_(outcome),
        begin_(std::chrono::steady_clock::now()),
        listener_(context.listener),
        context_{context.settings, context.environment, context.store, context.cancellation, {}} {
    context_.listener.note = [this](std::string_view note) { say_once(std::string(note)); };
    const tuner::Answer& answer = outcome.answer;
    iteration_ = answer.ranking.at(answer.chosen).prediction.iteration;
    options_.warmup = kWarmup;
    options_.check_iterations = 0;  // the timed iterations' spot checks are enough for so many runs
  }
  Replays(const Replays&) = delete;
  Replays& operator=(const Replays&) = delete;

  Seconds elapsed() const { return std::chrono::steady_clock::now() - begin_; }

  std::vector<Seconds> run(const Plan& plan) {
    RunRequest run;
    const PlanName name{std::to_string(outcome_.plans.at(plan.method)), {}, {}};
    run.job = find_jobs(context_, name, {}).front();
    run.placing = request_.verify->placing;
    run.placing.hosts = first_ranks(run.placing.hosts, ranks_of(plan));
    options_.iterations = iterations_of_run(request_.verify->limits, iteration_);
    run.options = options_;
    run.strict = request_.strict;
    context_.listener.progress = [this, method = plan.method](const Progressed& progress) {
      show(method, progress);
    };
    const Seconds begin = elapsed();
    const RunOutcome done = run_job(context_, run);
    iteration_ = std::max(iteration_, (elapsed() - begin) / (options_.iterations + options_.warmup));
    outcome_.runs[plan.method].push_back(done.run);
    const std::vector<double>& seconds = done.report.iteration_seconds;
    return {seconds.begin(), seconds.end()};
  }

 private:
  /// Every run says the same of hosts and of what the prediction rests on.
  void say_once(const std::string& note) {
    if (said_.insert(note).second && listener_.note) listener_.note(note);
  }

  void show(const std::string& method, const Progressed& run) const {
    if (!listener_.progress) return;
    const Seconds budget = request_.verify->limits.budget;
    const Seconds left = std::max(Seconds{}, budget - elapsed());
    listener_.progress({fmt::format("verifying {}: {}", method, run.what), 1 - left / budget, left});
  }

  const TuneRequest& request_;
  TuneOutcome& outcome_;
  const std::chrono::steady_clock::time_point begin_;
  const Listener listener_;
  Context context_;  ///< the caller's, with a listener of ours
  RunOptions options_;
  Seconds iteration_{};  ///< the longest so far, first as predicted
  std::set<std::string> said_;
};

}  // namespace

int ranks_of_job(const tuner::TuneOptions& options, const Cluster& cluster) {
  return options.workers > 0 ? options.workers + options.limits.dedicated_servers : cluster.ranks();
}

void check(const VerifyRequest& request, int ranks_of_job) {
  request.limits.check();
  request.placing.check();
  const int offered = known_ranks(request.placing.hosts);
  if (offered == 0 || offered >= ranks_of_job) return;
  throw Error(
      ErrorCode::kBadInput,
      fmt::format("verify: the job has {} ranks, the hosts offer {}: name hosts with {} slots in all, "
                  "or ask for fewer workers",
                  ranks_of_job, offered, ranks_of_job));
}

int iterations_of_run(const tuner::VerifyLimits& limits, Seconds iteration) {
  const double fit = limits.budget / (iteration * kRoundsWanted * limits.plans) - kWarmup;
  return static_cast<int>(std::clamp<double>(fit, kLeastIterations, kMostIterations));
}

void verify_outcome(const Context& context, const TuneRequest& request, TuneOutcome& outcome) {
  Replays replays(context, request, outcome);
  tuner::verify(outcome.answer, {request.verify->limits, [&](const Plan& plan) { return replays.run(plan); },
                                 [&] { return replays.elapsed(); }});
}

}  // namespace commtune::api
