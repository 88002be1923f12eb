#include "executor/replay/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "executor/memory/cuda/gpu_memory.h"
#include "executor/memory/host_memory.h"
#include "executor/replay/make_replay.h"
#include "executor/replay/run_fields.h"
#include "executor/session/exchange.h"
#include "executor/session/recorder.h"
#include "executor/session/session.h"
#include "executor/transport/rank_gpu.h"
#include "perfmodel/base/error.h"
#include "perfmodel/base/fields.h"
#include "perfmodel/base/json_reader.h"

namespace commtune {
namespace {

/// What all ranks must have in common beside what their session asks for.
std::vector<Fact> facts_of(std::span<const PlannedRun> plans, const Profile& profile, int rounds) {
  std::vector<Fact> facts{{"profile", digest(profile)},
                          {"number of plans", fmt::format("{}, {} turns each", plans.size(), rounds)}};
  for (const PlannedRun& each : plans) {
    const RunOptions& options = each.options;
    facts.push_back({"device", to_string(options.device)});
    facts.push_back({"iterations", fmt::format("{} + {} + {}", options.check_iterations, options.warmup,
                                               options.iterations)});
    facts.push_back(
        {"trace steps", options.trace_directory.empty() ? "none" : std::to_string(options.trace_steps)});
  }
  return facts;
}

/// Iterations of a plan whose messages a server keeps a record of: those of a trace.
int served_iterations(const RunOptions& options) {
  if (options.trace_directory.empty()) return 0;
  return options.check_iterations + options.warmup + options.trace_steps;
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

/// Of plans that are known beforehand.
SessionOptions session_options(std::span<const PlannedRun> plans, const Profile& profile, int rounds,
                               int ranks) {
  const RunOptions& first = plans.front().options;
  SessionOptions options;
  options.workers = plans.front().plan.workers;
  options.result = first.result;
  options.timeout = first.timeout;
  options.chunk = first.chunk;
  options.facts = facts_of(plans, profile, rounds);
  options.accept = [&profile, plans, ranks](const Plan& plan) {
    check(plan, profile);
    check_ranks(plans, ranks);
  };
  return options;
}

SessionOptions session_options(const PlanSource& source, const Profile& profile) {
  SessionOptions options;
  options.workers = source.workers;
  options.result = source.result;
  options.timeout = source.timeout;
  options.chunk = source.chunk;
  options.facts = {
      {"profile", digest(profile)}, {"source of plans", "rank 0"}, {"device", to_string(source.device)}};
  options.accept = [&profile](const Plan& plan) { check(plan, profile); };
  return options;
}

/// A plan on its way through its turns.
struct PlanTurns {
  std::size_t number = 0;
  const PlannedRun* run = nullptr;
  bool refused = false;
  std::optional<Recorder> recorder;
  CheckReport checked;
  int timed = 0;
};

/// One rank's part of a session in which a replay runs under one plan after another.
class ReplaySession {
 public:
  /// profile, events  outlive this
  ReplaySession(Transport& transport, const Profile& profile, const SessionOptions& options,
                DeviceKind device, const PlanEvents& events)
      : profile_(profile),
        events_(events),
        device_memory_(device_memory(transport.peers(), options.workers, device)),
        options_(with_memory(options, memory())),
        replay_(make_workload(transport.peers().rank)),
        session_(transport, layout_of(profile), replay_ ? replay_->gradients() : Gradients{}, options_) {
    survey_clocks();
  }

  Session& session() { return session_; }
  Deadline deadline() const {
    return Clock::now() + std::chrono::duration_cast<Clock::duration>(options_.timeout);
  }
  /// Between two plans: for a trace of the next one.
  void survey_clocks() { clocks_ = commtune::survey_clocks(session_.communicator(), deadline()); }

  /// own      as Session::adopt's
  /// returns  false: the plan is refused, which has been told
  bool adopt(std::size_t number, const std::optional<Plan>& own, const RunOptions& options) {
    tell(number, RunProgress::Phase::kAgreeing, 0, 1);
    session_.record_served(served_iterations(options));
    try {
      return session_.adopt(own);
    } catch (const PlanRefused& refused) {
      if (events_.refused) events_.refused(number, {refused.code(), refused.what()});
      return false;
    }
  }

  /// Of the plan that is in force.
  void take_turn(PlanTurns& plan, int round, int rounds) {
    if (!plan.recorder) {
      const RunOptions& options = plan.run->options;
      plan.recorder.emplace(session_.peers(), plan.run->plan, profile_, clocks_,
                            RecorderOptions{options.trace_directory, options.trace_steps});
    }
    if (replay_) {
      train(plan, round, rounds);
    } else {
      serve(*plan.recorder);
    }
    if (round + 1 == rounds) report(plan);
  }

 private:
  /// Of this rank's GPU, where it trains on one. A server's is the host's: gradients pass it on their way.
  static std::unique_ptr<Memory> device_memory(const Peers& peers, int workers, DeviceKind device) {
    if (device == DeviceKind::kHost || peers.rank >= workers) return nullptr;
    return make_gpu_memory(gpu_of_rank(peers));
  }
  static SessionOptions with_memory(SessionOptions options, Memory& memory) {
    options.memory = &memory;
    return options;
  }
  Memory& memory() const { return device_memory_ ? *device_memory_ : host_memory(); }

  /// None on a rank that does not train.
  std::unique_ptr<SessionWorkload> make_workload(int rank) const {
    if (rank >= options_.workers) return nullptr;
    return make_replay(profile_, rank, options_.workers, options_.result, memory());
  }
  void tell(std::size_t plan, RunProgress::Phase phase, int done, int total) const {
    if (events_.progress) events_.progress({phase, done, total, plan});
  }

  void serve(Recorder& recorder) {
    recorder.begin_turn({});
    const PlanEnd end = session_.end_plan();
    recorder.end_turn({});
    recorder.add(end);
  }

  void train(PlanTurns& plan, int round, int rounds) {
    const RunOptions& options = plan.run->options;
    const int checks = round == 0 ? options.check_iterations : 0;
    const int warmup = round == 0 ? options.warmup : std::min(options.warmup, 1);
    replay_->follow(plan.run->plan);
    const std::uint64_t tensors_before = replay_->tensors_compared();
    const std::uint64_t spots_before = replay_->spots_compared();
    for (int i = 0; i < checks; ++i) {
      replay_->iterate(session_, Compare::kEverything);
      tell(plan.number, RunProgress::Phase::kChecking, i + 1, checks);
    }
    for (int i = 0; i < warmup; ++i) {
      replay_->iterate(session_, Compare::kSpots);
      tell(plan.number, RunProgress::Phase::kWarming, i + 1, warmup);
    }
    // Rounds share the iterations as evenly as they can.
    time(plan, options.iterations * (round + 1) / rounds);
    plan.recorder->add(session_.end_plan());
    plan.checked.iterations = options.check_iterations;
    plan.checked.tensors += replay_->tensors_compared() - tensors_before;
    plan.checked.spot_elements += replay_->spots_compared() - spots_before;
  }

  /// Until so many iterations of the plan have been timed.
  void time(PlanTurns& plan, int all) {
    plan.recorder->begin_turn(session_.counts());
    for (; plan.timed < all; ++plan.timed) {
      const IterationTimes times = replay_->iterate(session_, Compare::kSpots);
      plan.recorder->add(times, replay_->layers(), session_.times(), session_.pull_times());
      tell(plan.number, RunProgress::Phase::kTiming, plan.timed + 1, plan.run->options.iterations);
    }
    plan.recorder->end_turn(session_.counts());
  }

  void report(PlanTurns& plan) {
    RunReport report = plan.recorder->report(session_, plan.checked, replay_ ? replay_->gradient_bytes() : 0,
                                             session_.traits().chunk, deadline());
    if (events_.finished) events_.finished(plan.number, std::move(report));
  }

  const Profile& profile_;
  const PlanEvents& events_;
  const std::unique_ptr<Memory> device_memory_;
  const SessionOptions options_;
  const std::unique_ptr<SessionWorkload> replay_;
  Session session_;
  ClockSurvey clocks_;
};

/// What rank 0 says between two plans.
struct NextPlan {
  std::size_t number = 0;
  RunOptions options;
};

template <typename Visitor, fields::Of<NextPlan> Given>
void visit_fields(Visitor& visit, Given& next) {
  visit("number", next.number, fields::Whole{0, std::uint64_t{1} << 53U});
  visit("options", next.options, fields::Object{});
}

NextPlan next_from(const std::string& text, const Peers& peers) {
  const std::string what = describe(peers, 0) + ": what it says of the next plan";
  const nlohmann::json document = parse_json(text, what);
  try {
    NextPlan next;
    fields::read_fields(JsonPlace(document), next);
    return next;
  } catch (const Error& error) {
    throw Error(error.code(), what + ": " + error.what());
  }
}

/// One rank's part in running what a source has.
class SourcedPlans {
 public:
  SourcedPlans(Transport& transport, const PlanSource& source, const Profile& profile)
      : source_(source),
        replays_(transport, profile, session_options(source, profile), source.device, source),
        session_(replays_.session()) {}

  void run() {
    std::optional<Plan> own;
    while (const std::optional<NextPlan> next = agree_on_next(own)) run(*next, own);
    session_.leave();
  }

 private:
  /// own      on rank 0, where there is a next one: its plan
  /// returns  nothing: no more plans come
  std::optional<NextPlan> agree_on_next(std::optional<Plan>& own) {
    std::string text;
    if (session_.rank() == 0) {
      if (const auto next = next_of_source(own)) text = fields::write_fields(*next).dump();
    }
    text = broadcast(session_.communicator(), text, Deadline::max());
    if (text.empty()) return std::nullopt;
    return next_from(text, session_.peers());
  }

  std::optional<NextPlan> next_of_source(std::optional<Plan>& own) {
    for (;;) {
      std::optional<PlannedRun> run = source_.next();
      if (!run) return std::nullopt;
      const NextPlan next{count_++, run->options};
      if (!suits(next)) continue;
      own = std::move(run->plan);
      return next;
    }
  }

  /// False: it breaks a rule by itself, which has been told here; no other rank hears of it.
  bool suits(const NextPlan& next) const {
    try {
      next.options.check();
      if (next.options.result != source_.result || next.options.timeout != source_.timeout ||
          next.options.chunk != source_.chunk || next.options.device != source_.device) {
        throw Error(ErrorCode::kBadInput,
                    "result, timeout, chunk and device of a plan: must be its session's");
      }
      return true;
    } catch (const Error& error) {
      if (source_.refused) source_.refused(next.number, {error.code(), error.what()});
      return false;
    }
  }

  void run(const NextPlan& next, const std::optional<Plan>& own) {
    if (!next.options.trace_directory.empty()) replays_.survey_clocks();
    if (!replays_.adopt(next.number, own, next.options)) return;
    const PlannedRun run{*session_.plan(), next.options};
    PlanTurns turns;
    turns.number = next.number;
    turns.run = &run;
    replays_.take_turn(turns, 0, 1);
  }

  const PlanSource& source_;
  ReplaySession replays_;
  Session& session_;
  std::size_t count_ = 0;  // of plans, on rank 0
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
  std::vector<PlanTurns> turns(plans.size());
  for (std::size_t i = 0; i < plans.size(); ++i) {
    turns[i].number = i;
    turns[i].run = &plans[i];
  }
  ReplaySession ranks(transport, profile,
                      session_options(plans, profile, options.rounds, transport.peers().size()),
                      plans.front().options.device, options);
  for (int round = 0; round < options.rounds; ++round) {
    for (PlanTurns& plan : turns) {
      if (plan.refused) continue;
      plan.refused = !ranks.adopt(plan.number, plan.run->plan, plan.run->options);
      if (!plan.refused) ranks.take_turn(plan, round, options.rounds);
    }
  }
  ranks.session().leave();
}

void run_plans(Transport& transport, const PlanSource& source, const Profile& profile) {
  require(source.workers >= 1, "workers", source.workers, "must be at least 1");
  SourcedPlans(transport, source, profile).run();
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
