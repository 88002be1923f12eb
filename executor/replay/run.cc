#include "executor/replay/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>

#include "executor/base/new_file.h"
#include "executor/engine/engine.h"
#include "executor/engine/message_limits.h"
#include "executor/replay/replay.h"
#include "executor/session/exchange.h"
#include "executor/session/process_usage.h"
#include "executor/session/trace.h"
#include "perfmodel/base/error.h"

namespace commtune {
namespace {

double seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

/// values not empty; sorts them.
double quantile(std::vector<double>& values, double q) {
  std::sort(values.begin(), values.end());
  const double at = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
}

/// Half the width of the median's 95 % interval, by order statistics (normal approximation of the binomial).
double median_half_width(std::vector<double> values) {
  if (values.size() < 2) return 0;
  const double n = static_cast<double>(values.size());
  const double spread = 0.98 / std::sqrt(n);
  const double low = quantile(values, std::max(0.0, 0.5 - spread));
  return 0.5 * (quantile(values, std::min(1.0, 0.5 + spread)) - low);
}

/// Messages' moments over the timed iterations, for their medians.
class MessageRecord {
 public:
  explicit MessageRecord(std::size_t messages) : samples_(messages) {}

  void add(Clock::time_point start, std::span<const MessageTimes> times) {
    for (std::size_t i = 0; i < times.size(); ++i) {
      const MessageTimes& t = times[i];
      const std::array moments{t.queued, t.started, t.reduced, t.distributed, t.used};
      for (std::size_t k = 0; k < moments.size(); ++k) samples_[i][k].push_back(seconds(moments[k] - start));
    }
  }

  std::vector<MessageReport> medians() {
    std::vector<MessageReport> result;
    for (auto& of : samples_) {
      if (of[0].empty()) return {};
      result.push_back({quantile(of[0], 0.5), quantile(of[1], 0.5), quantile(of[2], 0.5),
                        quantile(of[3], 0.5), quantile(of[4], 0.5)});
    }
    return result;
  }

 private:
  std::vector<std::array<std::vector<double>, 5>> samples_;
};

std::vector<Fact> facts(const Transport& transport, const Plan& plan, const Profile& profile,
                        const RunOptions& options, const RoadSettings& settings) {
  return {{"number of ranks", std::to_string(transport.peers().size())},
          {"transport", std::string(transport.name())},
          {"tensor type", to_string(profile.type)},
          {"number of tensors", std::to_string(profile.tensor_count())},
          {"size of all gradients", std::to_string(profile.gradient_bytes().count) + " B"},
          {"profile", digest(profile)},
          {"plan", digest(plan)},
          {"result", options.result == Result::kMean ? "mean" : "sum"},
          {"chunk size", std::to_string(settings.chunk.count) + " B"},
          {"iterations",
           fmt::format("{} + {} + {}", options.check_iterations, options.warmup, options.iterations)},
          {"trace steps", options.trace_directory.empty() ? "none" : std::to_string(options.trace_steps)}};
}

/// One rank's run, from agreement to its report.
class Run {
 public:
  Run(Transport& transport, const Plan& plan, const Profile& profile, const RunOptions& options,
      const std::function<void(const RunProgress&)>& progress)
      : communicator_(transport),
        plan_(plan),
        profile_(profile),
        options_(options),
        progress_(progress),
        settings_(make_settings(plan, profile, options.result, options.chunk)),
        record_(plan.messages.size()) {}

  RunReport run() {
    tell(RunProgress::Phase::kAgreeing, 0, 1);
    agree(communicator_, facts(communicator_.transport(), plan_, profile_, options_, settings_), deadline());
    commtune::check(plan_, profile_);
    if (ranks_of(plan_) != communicator_.size()) {
      throw Error(
          ErrorCode::kBadInput,
          fmt::format("ranks = {}: the plan needs {}, {} workers and {} dedicated servers",
                      communicator_.size(), ranks_of(plan_), plan_.workers, ranks_of(plan_) - plan_.workers));
    }
    // Comparing clocks brings all ranks to this point before one of them goes on.
    communicator_.transport().limit_messages(message_limits(plan_, profile_, settings_));
    own_.rank = communicator_.rank();
    own_.host = communicator_.peers().hosts[static_cast<std::size_t>(own_.rank)];
    own_.worker = own_.rank < plan_.workers;
    clocks_ = survey_clocks(communicator_, deadline());
    own_.clock_offset_seconds = clocks_.offset_seconds;
    if (own_.worker) {
      train();
    } else {
      serve();
    }
    own_.peak_bytes = process_usage().peak.count;
    merge();
    return hand_up();
  }

 private:
  Deadline deadline() const {
    return Clock::now() + std::chrono::duration_cast<Clock::duration>(options_.timeout);
  }
  void tell(RunProgress::Phase phase, int done, int total) const {
    if (progress_) progress_({phase, done, total});
  }

  EngineOptions engine_options() const {
    const int iterations = options_.check_iterations + options_.warmup + options_.trace_steps;
    const auto served = static_cast<std::size_t>(iterations) * plan_.messages.size();
    return {settings_, options_.timeout, options_.trace_directory.empty() ? 0 : served};
  }

  void train() {
    Replay replay(profile_, own_.rank, plan_.workers, options_.result);
    Engine engine(communicator_, plan_, profile_, replay.gradients(), engine_options());
    for (int i = 0; i < options_.check_iterations; ++i) {
      replay.iterate(engine, Compare::kEverything);
      tell(RunProgress::Phase::kChecking, i + 1, options_.check_iterations);
    }
    for (int i = 0; i < options_.warmup; ++i) {
      replay.iterate(engine, Compare::kSpots);
      tell(RunProgress::Phase::kWarming, i + 1, options_.warmup);
    }
    time(replay, engine);
    engine.finish();
    if (trace_) trace_->write_served(engine.served());
    own_.gradient_bytes = replay.gradient_bytes();
    own_.buffer_bytes = engine.buffer_bytes();
    checked_ = {options_.check_iterations, replay.tensors_compared(), replay.spots_compared()};
  }

  void time(Replay& replay, Engine& engine) {
    if (!options_.trace_directory.empty()) trace_.emplace(trace_options(), plan_, profile_);
    if (trace_) own_.trace = trace_->path();
    std::vector<std::pair<std::vector<LayerTimes>, std::vector<MessageTimes>>> traced;
    const ProcessUsage before = process_usage();
    const std::chrono::nanoseconds copied_before = engine.copying();
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < options_.iterations; ++i) {
      const IterationTimes times = replay.iterate(engine, Compare::kSpots);
      own_.iteration_seconds.push_back(seconds(times.end - times.start));
      own_.waited_seconds.push_back(times.waited.count());
      const auto messages = engine.times();
      if (own_.rank == 0) record_.add(times.start, messages);
      if (trace_ && i < options_.trace_steps) {
        traced.emplace_back(std::vector(replay.layers().begin(), replay.layers().end()),
                            std::vector(messages.begin(), messages.end()));
        if (i + 1 == std::min(options_.trace_steps, options_.iterations)) write_trace(traced);
      }
      tell(RunProgress::Phase::kTiming, i + 1, options_.iterations);
    }
    note_usage(before, start);
    own_.copying_seconds = seconds(engine.copying() - copied_before);
  }

  /// What this process used since then.
  void note_usage(const ProcessUsage& before, Clock::time_point start) {
    own_.wall_seconds = seconds(Clock::now() - start);
    const ProcessUsage now = process_usage();
    own_.cpu_seconds = (now.cpu - before.cpu).count();
    // Threads that ended meanwhile took theirs with them.
    own_.delayed_seconds = std::max(0.0, (now.delayed - before.delayed).count());
  }

  void write_trace(const std::vector<std::pair<std::vector<LayerTimes>, std::vector<MessageTimes>>>& traced) {
    for (std::size_t i = 0; i < traced.size(); ++i) {
      trace_->write(static_cast<int>(i), traced[i].first, traced[i].second);
    }
  }

  void serve() {
    const ProcessUsage before = process_usage();
    const Clock::time_point start = Clock::now();
    Engine engine(communicator_, plan_, profile_, {}, engine_options());
    engine.finish();
    note_usage(before, start);
    own_.buffer_bytes = engine.buffer_bytes();
  }

  std::filesystem::path trace_file(const std::string& name) const {
    std::error_code ignored;  // opening the file says what is wrong
    std::filesystem::create_directories(options_.trace_directory, ignored);
    return std::filesystem::path(options_.trace_directory) / name;
  }

  TraceOptions trace_options() const {
    return {trace_file(fmt::format("rank{}.json", own_.rank)).string(), own_.rank,
            fmt::format("rank {} on {}", own_.rank, own_.host), clocks_.zero, own_.clock_offset_seconds};
  }

  /// All ranks' traces in one file on rank 0, wherever their own files are.
  void merge() {
    if (options_.trace_directory.empty()) return;
    trace_.reset();
    std::string text;
    if (!own_.trace.empty()) {
      std::ifstream file(own_.trace);
      text.assign(std::istreambuf_iterator<char>(file), {});
    }
    std::vector<std::string> texts = gather(communicator_, text, deadline());
    if (own_.rank != 0) return;
    std::erase_if(texts, [](const std::string& each) { return each.empty(); });
    write_file(trace_file("all_ranks.json"), merge_traces(texts));
  }

  RunReport hand_up() {
    const std::vector<std::string> all =
        gather(communicator_, rank_part_to_text(own_report({own_})), deadline());
    if (own_.rank != 0) return own_report({own_});
    std::vector<RankReport> ranks;
    for (const std::string& text : all) {
      const auto rank = static_cast<int>(ranks.size());
      const RunReport part = rank_part_from_text(text, describe(communicator_.peers(), rank));
      ranks.push_back(part.ranks.front());
      if (rank == 0) continue;
      checked_.tensors += part.check.tensors;
      checked_.spot_elements += part.check.spot_elements;
    }
    return own_report(std::move(ranks));
  }

  RunReport own_report(std::vector<RankReport> ranks) {
    RunReport report;
    report.method = plan_.method;
    report.model = profile_.model;
    report.plan_digest = digest(plan_);
    report.profile_digest = digest(profile_);
    report.transport = communicator_.transport().name();
    report.workers = plan_.workers;
    report.chunk_bytes = settings_.chunk.count;
    report.check = checked_;
    report.messages = record_.medians();
    for (const RankReport& rank : ranks) {
      if (!rank.worker) continue;
      report.iteration_seconds.resize(rank.iteration_seconds.size(), 0);
      for (std::size_t i = 0; i < rank.iteration_seconds.size(); ++i) {
        report.iteration_seconds[i] = std::max(report.iteration_seconds[i], rank.iteration_seconds[i]);
      }
    }
    if (!report.iteration_seconds.empty()) {
      std::vector<double> sorted = report.iteration_seconds;
      report.median_seconds = quantile(sorted, 0.5);
      report.p95_seconds = quantile(sorted, 0.95);
      report.half_width_seconds = median_half_width(sorted);
    }
    if (!own_.waited_seconds.empty()) {
      std::vector<double> waited = own_.waited_seconds;
      report.waited_seconds = quantile(waited, 0.5);
    }
    report.ranks = std::move(ranks);
    return report;
  }

  Communicator communicator_;
  const Plan& plan_;
  const Profile& profile_;
  const RunOptions& options_;
  const std::function<void(const RunProgress&)>& progress_;
  const RoadSettings settings_;
  ClockSurvey clocks_;
  RankReport own_;
  CheckReport checked_;
  MessageRecord record_;
  std::optional<TraceWriter> trace_;
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

RunReport run_plan(Transport& transport, const Plan& plan, const Profile& profile, const RunOptions& options,
                   const std::function<void(const RunProgress&)>& progress) {
  options.check();
  return Run(transport, plan, profile, options, progress).run();
}

}  // namespace commtune
