#include "executor/session/recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>

#include "executor/base/new_file.h"

namespace commtune {
namespace {

double in_seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

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

}  // namespace

Recorder::Recorder(const Peers& peers, const Plan& plan, const Profile& profile, const ClockSurvey& clocks,
                   RecorderOptions options)
    : plan_(plan),
      profile_(profile),
      options_(std::move(options)),
      clocks_(clocks),
      moments_(plan.messages.size()) {
  own_.rank = peers.rank;
  own_.host = peers.hosts[static_cast<std::size_t>(own_.rank)];
  own_.worker = own_.rank < plan.workers;
  own_.clock_offset_seconds = clocks_.offset_seconds;
}

void Recorder::begin_turn(const EngineCounts& counts) {
  if (own_.worker && !options_.trace_directory.empty() && !trace_) {
    trace_.emplace(TraceOptions{trace_file(fmt::format("rank{}.json", own_.rank)).string(), own_.rank,
                                fmt::format("rank {} on {}", own_.rank, own_.host), clocks_.zero,
                                own_.clock_offset_seconds},
                   plan_, profile_);
    own_.trace = trace_->path();
  }
  counts_before_ = counts;
  before_ = process_usage();
  began_ = Clock::now();
}

void Recorder::add(const IterationTimes& times, std::span<const LayerTimes> layers,
                   std::span<const MessageTimes> messages, std::span<const MessageTimes> pulls) {
  own_.iteration_seconds.push_back(in_seconds(times.end - times.start));
  own_.waited_seconds.push_back(times.waited.count());
  for (std::size_t i = 0; own_.rank == 0 && i < messages.size(); ++i) {
    const MessageTimes& t = messages[i];
    const std::array moments{t.queued, t.started, t.reduced, t.distributed, t.used};
    for (std::size_t k = 0; k < moments.size(); ++k)
      moments_[i][k].push_back(in_seconds(moments[k] - times.start));
  }
  const auto iteration = static_cast<int>(own_.iteration_seconds.size());
  if (!trace_ || iteration > options_.trace_steps) return;
  traced_.emplace_back(std::vector(layers.begin(), layers.end()),
                       std::vector(messages.begin(), messages.end()));
  std::vector<MessageTimes>& traced = traced_.back().second;
  traced.insert(traced.end(), pulls.begin(), pulls.end());
  if (iteration == options_.trace_steps) write_traced();
}

void Recorder::end_turn(const EngineCounts& counts) {
  own_.wall_seconds += in_seconds(Clock::now() - began_);
  const ProcessUsage now = process_usage();
  own_.cpu_seconds += (now.cpu - before_.cpu).count();
  // Threads that ended meanwhile took theirs with them.
  own_.delayed_seconds += std::max(0.0, (now.delayed - before_.delayed).count());
  own_.copying_seconds += in_seconds(counts.copying - counts_before_.copying);
  own_.sent_bytes += counts.sent - counts_before_.sent;
  own_.overflows += counts.overflows - counts_before_.overflows;
  write_traced();
}

void Recorder::write_traced() {
  for (const auto& [layers, messages] : traced_) trace_->write(written_++, layers, messages);
  traced_.clear();
}

void Recorder::add(const PlanEnd& end) {
  own_.buffer_bytes = std::max(own_.buffer_bytes, end.buffer_bytes);
  if (!trace_ || server_traced_) return;
  // The first turn's: later ones are no part of the trace.
  server_traced_ = true;
  trace_->write_served(end.served);
}

std::filesystem::path Recorder::trace_file(const std::string& name) const {
  std::error_code ignored;  // opening the file says what is wrong
  std::filesystem::create_directories(options_.trace_directory, ignored);
  return std::filesystem::path(options_.trace_directory) / name;
}

void Recorder::merge_traces_of_ranks(Communicator& communicator, Deadline until) {
  if (options_.trace_directory.empty()) return;
  trace_.reset();
  std::string text;
  if (!own_.trace.empty()) {
    std::ifstream file(own_.trace);
    text.assign(std::istreambuf_iterator<char>(file), {});
  }
  std::vector<std::string> texts = gather(communicator, text, until);
  if (own_.rank != 0) return;
  std::erase_if(texts, [](const std::string& each) { return each.empty(); });
  write_file(trace_file("all_ranks.json"), merge_traces(texts));
}

RunReport Recorder::report(Session& session, const CheckReport& checked, std::uint64_t gradient_bytes,
                           Bytes chunk, Deadline until) {
  Communicator& communicator = session.communicator();
  own_.peak_bytes = process_usage().peak.count;
  own_.gradient_bytes = gradient_bytes;
  merge_traces_of_ranks(communicator, until);
  const auto named = [&](RunReport report) {
    report.transport = communicator.transport().name();
    report.chunk_bytes = chunk.count;
    return report;
  };
  RunReport own = named(report_of({own_}, checked));
  const std::vector<std::string> all = gather(communicator, rank_part_to_text(own), until);
  if (own_.rank != 0) return own;
  std::vector<RankReport> ranks;
  CheckReport all_checked = checked;
  for (const std::string& text : all) {
    const auto rank = static_cast<int>(ranks.size());
    const RunReport part = rank_part_from_text(text, describe(communicator.peers(), rank));
    ranks.push_back(part.ranks.front());
    if (rank == 0) continue;
    all_checked.tensors += part.check.tensors;
    all_checked.spot_elements += part.check.spot_elements;
  }
  return named(report_of(std::move(ranks), all_checked));
}

std::vector<MessageReport> Recorder::message_medians() {
  std::vector<MessageReport> medians;
  for (auto& of : moments_) {
    if (of[0].empty()) return {};
    medians.push_back({quantile(of[0], 0.5), quantile(of[1], 0.5), quantile(of[2], 0.5), quantile(of[3], 0.5),
                       quantile(of[4], 0.5)});
  }
  return medians;
}

RunReport Recorder::report_of(std::vector<RankReport> ranks, const CheckReport& checked) {
  RunReport report;
  report.method = plan_.method;
  report.model = profile_.model;
  report.plan_digest = digest(plan_);
  report.profile_digest = digest(profile_);
  report.workers = plan_.workers;
  if (plan_.wire != WireFormat::kAsIs) report.wire = to_string(plan_.wire);
  report.check = checked;
  report.messages = message_medians();
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

}  // namespace commtune
