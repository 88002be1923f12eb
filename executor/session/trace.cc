#include "executor/session/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "perfmodel/base/error.h"

namespace commtune {
namespace {

// Thread numbers in the trace; overlapping messages take further lanes of their stage.
constexpr int kCompute = 1;
constexpr int kServer = 2;
constexpr int kReduce = 10;
constexpr int kDistribute = 100;
constexpr int kLanes = 80;

constexpr std::string_view kFooter = "\n]}\n";

std::string quoted(const std::string& text) { return nlohmann::json(text).dump(); }

/// Gives overlapping spans lanes of their own: the first lane that is free again.
class Lanes {
 public:
  int take(Clock::time_point from, Clock::time_point until) {
    std::size_t lane = 0;
    while (lane < free_.size() && lane + 1 < kLanes && free_[lane] > from) ++lane;
    if (lane == free_.size()) free_.emplace_back();
    free_[lane] = std::max(free_[lane], until);
    return static_cast<int>(lane);
  }

 private:
  std::vector<Clock::time_point> free_;
};

}  // namespace

TraceWriter::TraceWriter(const TraceOptions& options, const Plan& plan, const Profile& profile)
    : options_(options), named_(kDistribute + kLanes + 1, false), file_(options.path) {
  std::vector<std::string> tensors;
  for (const auto& layer : profile.layers) {
    layer_names_.push_back(layer.name);
    for (const Tensor& tensor : layer.tensors) tensors.push_back(tensor.name);
  }
  const auto add = [&](const char* kind, const std::vector<Message>& messages) {
    for (std::size_t i = 0; i < messages.size(); ++i) {
      const std::vector<Piece>& pieces = messages[i].pieces;
      std::string name = fmt::format("{} {}: {}", kind, i, tensors[pieces.front().tensor]);
      if (pieces.size() > 1) name += fmt::format(" +{}", pieces.size() - 1);
      message_names_.push_back(std::move(name));
      message_bytes_.push_back(message_bytes(messages[i]).count);
    }
  };
  add("message", plan.messages);
  pushed_ = message_names_.size();
  add("pull", plan.pulls);
  const std::string header = fmt::format(
      "{{\"displayTimeUnit\":\"ms\",\"metadata\":{{\"plan\":{},\"model\":{},\"rank\":{},"
      "\"clock_offset_us\":{:.3f}}},\"traceEvents\":[\n",
      quoted(digest(plan)), quoted(plan.model), options_.rank, options_.clock_offset_seconds * 1e6);
  std::fwrite(header.data(), 1, header.size(), file_.stream());
  batch_ = fmt::format("{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{0},\"args\":{{\"name\":{1}}}}}",
                       options_.rank, quoted(options_.name));
  flush();
  file_.put_in_place();
}

double TraceWriter::microseconds(Clock::time_point at) const {
  return std::chrono::duration<double, std::micro>(at - options_.zero).count() -
         options_.clock_offset_seconds * 1e6;
}

void TraceWriter::event(std::string_view name, int lane, Clock::time_point from, Clock::time_point until,
                        const std::string& arguments) {
  batch_ += fmt::format(
      ",\n{{\"ph\":\"X\",\"name\":{},\"pid\":{},\"tid\":{},\"ts\":{:.3f},\"dur\":{:.3f},\"args\":{{{}}}}}",
      quoted(std::string(name)), options_.rank, lane, microseconds(from),
      std::max(0.0, microseconds(until) - microseconds(from)), arguments);
}

void TraceWriter::name_lane(int lane, const std::string& name) {
  if (named_[static_cast<std::size_t>(lane)]) return;
  named_[static_cast<std::size_t>(lane)] = true;
  batch_ += fmt::format(
      ",\n{{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":{0},\"tid\":{1},\"args\":{{\"name\":{2}}}}}"
      ",\n{{\"ph\":\"M\",\"name\":\"thread_sort_index\",\"pid\":{0},\"tid\":{1},\"args\":{{\"sort_index\":{1}"
      "}}}}",
      options_.rank, lane, quoted(name));
}

void TraceWriter::write(int iteration, std::span<const LayerTimes> layers,
                        std::span<const MessageTimes> messages) {
  name_lane(kCompute, "compute");
  const std::string which = fmt::format("\"iteration\":{}", iteration);
  first_ = std::min(first_, layers.back().backward_start);
  last_ = std::max(last_, layers.back().forward_end);
  Clock::time_point last{};
  for (std::size_t i = layers.size(); i-- > 0;) {
    event("backward " + layer_names_[i], kCompute, layers[i].backward_start, layers[i].backward_end, which);
    last = std::max(last, layers[i].backward_end);
  }
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (layers[i].forward_start > last)
      event("wait for " + layer_names_[i], kCompute, last, layers[i].forward_start, which);
    event("forward " + layer_names_[i], kCompute, layers[i].forward_start, layers[i].forward_end, which);
    last = layers[i].forward_end;
  }

  std::vector<std::size_t> order(messages.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return messages[a].started < messages[b].started; });
  Lanes reduce;
  Lanes distribute;
  for (const std::size_t i : order) {
    const MessageTimes& times = messages[i];
    const std::string arguments =
        fmt::format("{},\"bytes\":{},\"queued_us\":{:.3f},\"used_us\":{:.3f}", which, message_bytes_[i],
                    microseconds(times.queued), microseconds(times.used));
    if (i < pushed_) {
      const int lane = kReduce + reduce.take(times.started, times.reduced);
      name_lane(lane, "reduce");
      event(message_names_[i], lane, times.started, times.reduced, arguments);
      if (pushed_ < messages.size()) continue;                // what comes back is a pull
      if (times.distributed <= times.distributing) continue;  // one stage only
    }
    const int next = kDistribute + distribute.take(times.distributing, times.distributed);
    name_lane(next, "distribute");
    event(message_names_[i], next, times.distributing, times.distributed, arguments);
  }
  flush();
}

void TraceWriter::write_served(std::span<const Served> served) {
  Lanes lanes;
  for (const Served& each : served) {
    if (each.from < first_ || each.until > last_) continue;
    const int lane = kServer + std::min(lanes.take(each.from, each.until), kReduce - kServer - 1);
    name_lane(lane, "server");
    event(message_names_[each.number], lane, each.from, each.until, "");
  }
  flush();
}

void TraceWriter::flush() {
  // The footer is written with every batch and overwritten by the next one.
  batch_ += kFooter;
  std::fwrite(batch_.data(), 1, batch_.size(), file_.stream());
  file_.flush();
  std::fseek(file_.stream(), -static_cast<long>(kFooter.size()), SEEK_CUR);
  batch_.clear();
}

void write_predicted_trace(const std::string& path, const Plan& plan, const Profile& profile,
                           const Timeline& timeline, Seconds begins) {
  // Its own process number, well away from any rank's.
  constexpr int kPredicted = 1'000'000;
  const auto at = [begins](Seconds time) {
    return Clock::time_point{} + std::chrono::duration_cast<Clock::duration>(begins + time);
  };
  std::vector<LayerTimes> layers;
  for (std::size_t i = 0; i < timeline.backward_start.size(); ++i) {
    layers.push_back({at(timeline.backward_start[i]), at(timeline.backward_end[i]),
                      at(timeline.forward_start[i]), at(timeline.forward_end[i])});
  }
  std::vector<MessageSpan> spans = timeline.messages;
  spans.insert(spans.end(), timeline.pulls.begin(), timeline.pulls.end());
  std::vector<MessageTimes> messages;
  messages.reserve(spans.size());
  for (const MessageSpan& span : spans) {
    messages.push_back({at(span.released), at(span.reduce_start), at(span.reduce_end),
                        at(span.distribute_start), at(span.distribute_end), at(span.distribute_end)});
  }
  TraceWriter writer({path, kPredicted, "predicted", Clock::time_point{}, 0}, plan, profile);
  writer.write(0, layers, messages);
}

std::string merge_traces(std::span<const std::string> texts) {
  nlohmann::json merged;
  for (const std::string& text : texts) {
    nlohmann::json trace = nlohmann::json::parse(text, nullptr, false);
    if (trace.is_discarded() || !trace.is_object() || !trace.contains("traceEvents")) {
      throw Error(ErrorCode::kBadInput, "trace: expected a JSON object with traceEvents");
    }
    if (merged.is_null()) {
      merged = std::move(trace);
      continue;
    }
    for (nlohmann::json& event : trace["traceEvents"]) merged["traceEvents"].push_back(std::move(event));
  }
  return merged.dump();
}

}  // namespace commtune
