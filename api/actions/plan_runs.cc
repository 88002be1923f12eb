#include "api/actions/plan_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/question/plan_lookup.h"

namespace commtune::api {

PlanRuns::PlanRuns(const Context& context, RunSession& session, Setup setup)
    : setup_(std::move(setup)),
      begin_(std::chrono::steady_clock::now()),
      listener_(context.listener),
      session_(session),
      context_{context.settings, context.environment, context.store, context.cancellation, {}} {
  context_.listener.note = [this](std::string_view note) {
    if (said_.emplace(note).second && listener_.note) listener_.note(note);
  };
}

PlanRuns::Ran PlanRuns::run(RowId plan, int iterations) {
  RunRequest run;
  run.job = find_jobs(context_, {std::to_string(plan), {}, {}}, {}).front();
  run.placing = placing_for(setup_.placing, run.job);
  run.options.device = run.job.device;
  run.options.warmup = setup_.warmup;
  run.options.check_iterations = 0;  // the timed iterations' spot checks are enough for so short a run
  run.options.iterations = iterations;
  run.strict = setup_.strict;
  context_.listener.progress = [this, method = run.job.plan.method](const Progressed& progress) {
    show(method, progress);
  };
  const Seconds begin = elapsed();
  RunSession::Ran ran = session_.run(context_, run);
  return {std::move(ran.outcome), elapsed() - begin - ran.starting};
}

void PlanRuns::show(const std::string& method, const Progressed& run) const {
  if (!listener_.progress) return;
  const Seconds left = std::max(Seconds{}, setup_.budget - elapsed());
  listener_.progress(
      {fmt::format("{} {}: {}", setup_.doing, method, run.what), 1 - left / setup_.budget, left});
}

int iterations_within(Seconds time, Seconds iteration, int warmup) {
  constexpr int kLeast = 3, kMost = 20;
  const double fit = iteration > Seconds{0} ? time / iteration - warmup : kMost;
  return static_cast<int>(std::clamp<double>(fit, kLeast, kMost));
}

}  // namespace commtune::api
