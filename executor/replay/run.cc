#include "executor/replay/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "executor/replay/replay.h"
#include "executor/session/recorder.h"
#include "executor/session/session.h"
#include "perfmodel/base/error.h"

namespace commtune {
namespace {

/// What all ranks must have in common beside what their session asks for.
std::vector<Fact> facts_of(std::span<const PlannedRun> plans, const Profile& profile, int rounds) {
  std::vector<Fact> facts{{"profile", digest(profile)},
                          {"number of plans", fmt::format("{}, {} turns each", plans.size(), rounds)}};
  for (const PlannedRun& each : plans) {
    const RunOptions& options = each.options;
    facts.push_back({"iterations", fmt::format("{} + {} + {}", options.check_iterations, options.warmup,
                                               options.iterations)});
    facts.push_back(
        {"trace steps", options.trace_directory.empty() ? "none" : std::to_string(options.trace_steps)});
  }
  return facts;
}

/// Messages that the first turn of any plan may serve, where a trace wants them.
std::size_t served_limit(std::span<const PlannedRun> plans) {
  std::size_t most = 0;
  for (const PlannedRun& each : plans) {
    if (each.options.trace_directory.empty()) continue;
    const int iterations = each.options.check_iterations + each.options.warmup + each.options.trace_steps;
    most = std::max(most, static_cast<std::size_t>(iterations) * each.plan.messages.size());
  }
  return most;
}

/// A rank that no plan needs is a mistake in the number of ranks.
void check_ranks(std::span<const PlannedRun> plans, int ranks) {
  const auto needs_more = [](const PlannedRun& a, const PlannedRun& b) {
    return ranks_of(a.plan) < ranks_of(b.plan);
  };
  const Plan& plan = std::ranges::max_element(plans, needs_more)->plan;
  if (ranks_of(plan) == ranks) return;
  throw Error(ErrorCode::kBadInput,
              fmt::format("ranks = {}: the plan needs {}, {} workers and {} dedicated servers", ranks,
                          ranks_of(plan), plan.workers, ranks_of(plan) - plan.workers));
}

SessionOptions session_options(std::span<const PlannedRun> plans, const Profile& profile, int rounds,
                               int ranks) {
  const RunOptions& first = plans.front().options;
  SessionOptions options;
  options.workers = plans.front().plan.workers;
  options.result = first.result;
  options.timeout = first.timeout;
  options.chunk = first.chunk;
  options.served_limit = served_limit(plans);
  options.facts = facts_of(plans, profile, rounds);
  options.accept = [&profile, plans, ranks](const Plan& plan) {
    check(plan, profile);
    check_ranks(plans, ranks);
  };
  return options;
}

/// One rank's part, from agreement to its reports.
class Turns {
 public:
  Turns(Transport& transport, std::span<const PlannedRun> plans, const Profile& profile,
        const TurnOptions& options)
      : plans_(plans),
        profile_(profile),
        options_(options),
        of_plan_(plans.size()),
        replay_(make_replay(transport.peers().rank)),
        session_(transport, layout_of(profile), replay_ ? replay_->gradients() : Gradients{},
                 session_options(plans, profile, options.rounds, transport.peers().size())),
        clocks_(survey_clocks(session_.communicator(), deadline())) {}

  void run() {
    for (int round = 0; round < options_.rounds; ++round) {
      for (std::size_t plan = 0; plan < plans_.size(); ++plan) {
        if (!of_plan_[plan].refused && adopt(plan)) take_turn(plan, round);
      }
    }
    session_.leave();
  }

 private:
  struct OfPlan {
    bool refused = false;
    std::optional<Recorder> recorder;
    CheckReport checked;
    int timed = 0;
  };

  /// None on a rank that does not train.
  std::unique_ptr<Replay> make_replay(int rank) const {
    const int workers = plans_.front().plan.workers;
    if (rank >= workers) return nullptr;
    return std::make_unique<Replay>(profile_, rank, workers, plans_.front().options.result);
  }
  Deadline deadline() const {
    return Clock::now() + std::chrono::duration_cast<Clock::duration>(plans_.front().options.timeout);
  }
  void tell(std::size_t plan, RunProgress::Phase phase, int done, int total) const {
    if (options_.progress) options_.progress({phase, done, total, plan});
  }

  bool adopt(std::size_t plan) {
    tell(plan, RunProgress::Phase::kAgreeing, 0, 1);
    try {
      return session_.adopt(plans_[plan].plan);
    } catch (const PlanRefused& refused) {
      of_plan_[plan].refused = true;
      if (options_.refused) options_.refused(plan, {refused.code(), refused.what()});
      return false;
    }
  }

  void take_turn(std::size_t plan, int round) {
    OfPlan& of = of_plan_[plan];
    const RunOptions& options = plans_[plan].options;
    if (!of.recorder) {
      of.recorder.emplace(session_.peers(), plans_[plan].plan, profile_, clocks_,
                          RecorderOptions{options.trace_directory, options.trace_steps});
    }
    if (replay_) {
      train(plan, round);
    } else {
      serve(*of.recorder);
    }
    if (round + 1 < options_.rounds) return;
    const Bytes chunk = make_settings(plans_[plan].plan, profile_.type, options.result, options.chunk).chunk;
    RunReport report =
        of.recorder->report(session_, of.checked, replay_ ? replay_->gradient_bytes() : 0, chunk, deadline());
    if (options_.finished) options_.finished(plan, std::move(report));
  }

  void serve(Recorder& recorder) {
    recorder.begin_turn({});
    const PlanEnd end = session_.end_plan();
    recorder.end_turn({});
    recorder.add(end);
  }

  void train(std::size_t plan, int round) {
    OfPlan& of = of_plan_[plan];
    const RunOptions& options = plans_[plan].options;
    const int checks = round == 0 ? options.check_iterations : 0;
    const int warmup = round == 0 ? options.warmup : std::min(options.warmup, 1);
    replay_->follow(plans_[plan].plan);
    const std::uint64_t tensors_before = replay_->tensors_compared();
    const std::uint64_t spots_before = replay_->spots_compared();
    for (int i = 0; i < checks; ++i) {
      replay_->iterate(session_, Compare::kEverything);
      tell(plan, RunProgress::Phase::kChecking, i + 1, checks);
    }
    for (int i = 0; i < warmup; ++i) {
      replay_->iterate(session_, Compare::kSpots);
      tell(plan, RunProgress::Phase::kWarming, i + 1, warmup);
    }
    // Rounds share the iterations as evenly as they can.
    time(plan, options.iterations * (round + 1) / options_.rounds);
    of.recorder->add(session_.end_plan());
    of.checked.iterations = options.check_iterations;
    of.checked.tensors += replay_->tensors_compared() - tensors_before;
    of.checked.spot_elements += replay_->spots_compared() - spots_before;
  }

  /// Until so many iterations of the plan have been timed.
  void time(std::size_t plan, int all) {
    OfPlan& of = of_plan_[plan];
    of.recorder->begin_turn(session_.copying());
    for (; of.timed < all; ++of.timed) {
      const IterationTimes times = replay_->iterate(session_, Compare::kSpots);
      of.recorder->add(times, replay_->layers(), session_.times());
      tell(plan, RunProgress::Phase::kTiming, of.timed + 1, plans_[plan].options.iterations);
    }
    of.recorder->end_turn(session_.copying());
  }

  const std::span<const PlannedRun> plans_;
  const Profile& profile_;
  const TurnOptions& options_;
  std::vector<OfPlan> of_plan_;
  const std::unique_ptr<Replay> replay_;
  Session session_;
  const ClockSurvey clocks_;
};

template <typename T>
void require(bool holds, const char* field, T value, const char* rule) {
  if (!holds) throw Error(ErrorCode::kBadInput, fmt::format("{} = {}: {}", field, value, rule));
}

}  // namespace

void RunOptions::check() const {
  require(iterations >= 1, "iterations", iterations, "must be at least 1");
  require(warmup >= 0, "warmup", warmup, "must not be negative");
  require(check_iterations >= 0, "check_iterations", check_iterations, "must not be negative");
  require(timeout.count() > 0, "timeout", timeout.count(), "must be more than 0 s");
  require(chunk.count == 0 || chunk.count >= 1024, "chunk", chunk.count,
          "must be at least 1024 B, or 0 for the default");
  require(trace_steps >= 0, "trace_steps", trace_steps, "must not be negative");
}

void run_plans(Transport& transport, std::span<const PlannedRun> plans, const Profile& profile,
               const TurnOptions& options) {
  require(!plans.empty(), "plans", plans.size(), "must be at least 1");
  for (const PlannedRun& each : plans) {
    each.options.check();
    require(options.rounds >= 1 && options.rounds <= each.options.iterations, "rounds", options.rounds,
            "must be at least 1 and no more than any plan's iterations");
  }
  Turns(transport, plans, profile, options).run();
}

RunReport run_plan(Transport& transport, const Plan& plan, const Profile& profile, const RunOptions& options,
                   const std::function<void(const RunProgress&)>& progress) {
  const PlannedRun only{plan, options};
  RunReport result;
  TurnOptions turns;
  turns.progress = progress;
  turns.finished = [&](std::size_t, RunReport report) { result = std::move(report); };
  turns.refused = [](std::size_t, const Refusal& refusal) { throw PlanRefused(refusal.code, refusal.text); };
  run_plans(transport, std::span(&only, 1), profile, turns);
  return result;
}

}  // namespace commtune
