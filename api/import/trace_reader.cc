// Kineto's output is described by what writes it (libkineto/src/output_json.cpp), PyTorch's execution trace
// by torch/csrc/profiler/standalone/execution_trace_observer.cpp, and what the link adds to it by
// src/trace_link/trace_linker.py of mlcommons/chakra.

#include "api/import/trace_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

#include "perfmodel/base/error.h"
#include "perfmodel/base/json_reader.h"

namespace commtune::api {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kEvaluate = "autograd::engine::evaluate_function: ";
constexpr std::string_view kAccumulate = "torch::autograd::AccumulateGrad";
constexpr std::string_view kModulePrefix = "nn.Module: ";
constexpr std::size_t kLongestNameShown = 100;
constexpr std::size_t kMostDimensions = 64;
constexpr double kLargestMicroseconds = 1e18;

constexpr std::string_view kHowToLink =
    "chakra_trace_link --chakra-host-trace ET.json --chakra-device-trace KINETO.json --output-file "
    "LINKED.json "
    "makes the JSON that is read here, before chakra_converter";

[[noreturn]] void refuse(std::string_view what, std::string_view why) {
  throw Error(ErrorCode::kBadInput, fmt::format("{}: {}", what, why));
}

std::string shown(const std::string& name) {
  std::string text = name.substr(0, kLongestNameShown);
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
  return text;
}

/// One event of the file's list, for errors.
struct EventPlace {
  std::string_view what;
  std::string_view list;
  std::size_t position;
  const std::string& name;

  [[noreturn]] void fail(std::string_view why) const {
    refuse(what, fmt::format("{}[{}] \"{}\": {}", list, position, shown(name), why));
  }
};

const Json* find(const Json& object, std::string_view key) {
  if (!object.is_object()) return nullptr;
  const auto at = object.find(key);
  return at == object.end() || at->is_null() ? nullptr : &*at;
}

std::string text_of(const Json* value) {
  return value != nullptr && value->is_string() ? value->get<std::string>() : std::string();
}

std::optional<std::int64_t> whole_of(const Json* value) {
  if (value == nullptr || !value->is_number_integer()) return std::nullopt;
  return value->get<std::int64_t>();
}

double microseconds(const Json& event, std::string_view key, const EventPlace& place) {
  const Json* value = find(event, key);
  if (value == nullptr || !value->is_number())
    place.fail(fmt::format("\"{}\" is missing: expected a time in us", key));
  const double given = value->get<double>();
  if (!(std::abs(given) <= kLargestMicroseconds))
    place.fail(fmt::format("\"{}\": expected a time in us, got {}", key, given));
  return given;
}

std::vector<std::uint64_t> shape_of(const Json& dimensions, const EventPlace& place) {
  std::vector<std::uint64_t> shape;
  if (!dimensions.is_array() || dimensions.size() > kMostDimensions)
    place.fail("the gradient's shape is no list");
  for (const Json& dimension : dimensions) {
    if (!dimension.is_number_unsigned()) place.fail("the gradient's shape has something else than sizes");
    shape.push_back(dimension.get<std::uint64_t>());
  }
  return shape;
}

/// By the name alone; the rest are operators.
TraceEventKind kind_of(std::string_view name) {
  if (name.starts_with(kEvaluate)) return TraceEventKind::kEvaluation;
  if (name == kAccumulate) return TraceEventKind::kGradient;
  return TraceEventKind::kOperator;
}

/// Times as seconds since the first event: those of the file are microseconds since the machine was started
/// or since 1970, whose differences would lose digits.
class Times {
 public:
  void set(TraceEvent& event, double start, double duration) {
    if (!first_) first_ = start;
    event.start = Seconds{(start - *first_) * 1e-6};
    event.end = Seconds{(start - *first_ + std::max(0.0, duration)) * 1e-6};
  }

 private:
  std::optional<double> first_;
};

// --- Kineto ---------------------------------------------------------------------------------------------

void read_kineto_gradient(const Json& arguments, const EventPlace& place, TraceEvent& event) {
  const Json* dimensions = find(arguments, "Input Dims");
  const Json* types = find(arguments, "Input type");
  if (dimensions == nullptr || types == nullptr) return;
  if (!dimensions->is_array() || dimensions->empty() || !types->is_array() || types->empty()) return;
  event.shape = shape_of(dimensions->front(), place);
  event.type = text_of(&types->front());
}

std::string kineto_device(const Json& document) {
  if (const Json* devices = find(document, "deviceProperties"); devices != nullptr && devices->is_array())
    for (const Json& device : *devices)
      if (std::string name = text_of(find(device, "name")); !name.empty()) return name;
  const std::string host = text_of(find(document, "host_name"));
  return host.empty() ? std::string() : "processor of " + host;
}

bool is_device_category(std::string_view category) {
  return category == "kernel" || category == "gpu_memcpy" || category == "gpu_memset";
}

std::optional<TraceEventKind> kineto_kind(std::string_view category, std::string_view name) {
  if (is_device_category(category)) return TraceEventKind::kDevice;
  if (category == "cpu_op") return kind_of(name);
  if (category == "python_function" && name.starts_with(kModulePrefix)) return TraceEventKind::kModule;
  return std::nullopt;
}

RecordedTrace read_kineto(const Json& document, const Json& list, std::string_view what) {
  RecordedTrace trace;
  trace.list = "traceEvents";
  trace.device = kineto_device(document);
  Times times;
  std::unordered_map<std::int64_t, std::size_t> by_external;
  std::vector<std::pair<std::size_t, std::int64_t>> launched;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Json& given = list[i];
    if (text_of(find(given, "ph")) != "X") continue;
    const std::string name = text_of(find(given, "name"));
    const std::optional<TraceEventKind> kind = kineto_kind(text_of(find(given, "cat")), name);
    if (!kind) continue;
    const EventPlace place{what, trace.list, i, name};
    TraceEvent event;
    event.kind = *kind;
    event.name = name;
    event.position = i;
    times.set(event, microseconds(given, "ts", place), microseconds(given, "dur", place));
    event.thread = whole_of(find(given, "tid")).value_or(0);
    static const Json kNone = Json::object();
    const Json* found = find(given, "args");
    const Json& arguments = found == nullptr ? kNone : *found;
    event.sequence = whole_of(find(arguments, "Sequence number"));
    if (event.kind == TraceEventKind::kGradient) read_kineto_gradient(arguments, place, event);
    if (const auto external = whole_of(find(arguments, "External id"))) {
      if (event.kind == TraceEventKind::kDevice)
        launched.emplace_back(trace.events.size(), *external);
      else
        by_external[*external] = trace.events.size();
    }
    trace.events.push_back(std::move(event));
  }
  for (const auto& [event, external] : launched)
    if (const auto at = by_external.find(external); at != by_external.end())
      trace.events[event].launcher = at->second;
  return trace;
}

// --- Chakra ---------------------------------------------------------------------------------------------

/// The value of one of a node's attributes.
const Json* attribute(const Json& node, std::string_view name) {
  const Json* attributes = find(node, "attrs");
  if (attributes == nullptr || !attributes->is_array()) return nullptr;
  for (const Json& one : *attributes)
    if (text_of(find(one, "name")) == name) return find(one, "value");
  return nullptr;
}

void read_chakra_gradient(const Json& node, const EventPlace& place, TraceEvent& event) {
  const Json* inputs = find(node, "inputs");
  if (inputs == nullptr) return;
  const Json* shapes = find(*inputs, "shapes");
  const Json* types = find(*inputs, "types");
  if (shapes == nullptr || types == nullptr || !shapes->is_array() || shapes->empty() || !types->is_array() ||
      types->empty())
    return;
  // "Tensor(float)"
  const std::string type = text_of(&types->front());
  if (!type.starts_with("Tensor(") || !type.ends_with(')')) return;
  event.shape = shape_of(shapes->front(), place);
  event.type = type.substr(7, type.size() - 8);
}

/// A function of the backward pass has its number in the node inside its evaluation.
void number_evaluations(RecordedTrace& trace, const Json& list,
                        const std::unordered_map<std::int64_t, std::size_t>& by_id) {
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    const TraceEvent& event = trace.events[i];
    if (event.kind != TraceEventKind::kOperator || !event.sequence) continue;
    const auto parent = whole_of(find(list[event.position], "ctrl_deps"));
    const auto at = parent ? by_id.find(*parent) : by_id.end();
    if (at == by_id.end()) continue;
    TraceEvent& outer = trace.events[at->second];
    if (outer.kind == TraceEventKind::kEvaluation && !outer.sequence) outer.sequence = event.sequence;
  }
}

RecordedTrace read_chakra(const Json& list, std::string_view what) {
  RecordedTrace trace;
  trace.list = "nodes";
  Times times;
  std::unordered_map<std::int64_t, std::size_t> by_id;
  std::vector<std::pair<std::size_t, std::int64_t>> launched;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Json& node = list[i];
    if (find(node, "ts") == nullptr) continue;  // nothing was linked with it
    const std::string name = text_of(find(node, "name"));
    const EventPlace place{what, trace.list, i, name};
    TraceEvent event;
    event.name = name;
    event.position = i;
    const std::string category = text_of(find(node, "cat"));
    event.kind = is_device_category(category) ? TraceEventKind::kDevice : kind_of(name);
    times.set(event, microseconds(node, "ts", place), microseconds(node, "inclusive_dur", place));
    event.thread = whole_of(attribute(node, "tid")).value_or(0);
    if (const auto sequence = whole_of(attribute(node, "seq_id")); sequence && *sequence >= 0)
      event.sequence = sequence;
    if (event.kind == TraceEventKind::kGradient) read_chakra_gradient(node, place, event);
    if (event.kind == TraceEventKind::kDevice) {
      if (const auto parent = whole_of(find(node, "ctrl_deps")))
        launched.emplace_back(trace.events.size(), *parent);
    } else if (const auto id = whole_of(find(node, "id"))) {
      by_id[*id] = trace.events.size();
    }
    trace.events.push_back(std::move(event));
  }
  if (trace.events.empty())
    refuse(what,
           fmt::format("nodes: none has a time (\"ts\"): PyTorch's execution trace has none by itself; {}",
                       kHowToLink));
  number_evaluations(trace, list, by_id);
  for (const auto& [event, parent] : launched)
    if (const auto at = by_id.find(parent); at != by_id.end()) trace.events[event].launcher = at->second;
  return trace;
}

/// What is no JSON document, by what it is instead.
void refuse_other_forms(std::string_view text, std::string_view what) {
  if (text.starts_with("\x1f\x8b"))
    refuse(what, "is compressed: unpack it with gunzip and import what comes out");
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) refuse(what, "is empty: expected a trace as JSON");
  if (text[first] != '{' && text[first] != '[')
    refuse(what, fmt::format("is no JSON: a Chakra trace as protobuf (.et) is not read; {}", kHowToLink));
  if (text.find("\"COMP_NODE\"") != std::string_view::npos)
    refuse(what, fmt::format("is a Chakra trace that chakra_jsonizer wrote: it is not read; {}", kHowToLink));
}

}  // namespace

RecordedTrace read_trace(std::string_view text, std::string_view what) {
  refuse_other_forms(text, what);
  const Json document = parse_json(text, what);
  if (document.is_array()) return read_kineto(document, document, what);
  if (const Json* events = find(document, "traceEvents"); events != nullptr && events->is_array())
    return read_kineto(document, *events, what);
  if (const Json* nodes = find(document, "nodes"); nodes != nullptr && nodes->is_array())
    return read_chakra(*nodes, what);
  refuse(what,
         "has neither \"traceEvents\" (a Chrome trace of PyTorch's profiler) nor \"nodes\" (a Chakra trace)");
}

}  // namespace commtune::api
