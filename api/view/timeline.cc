#include "api/view/timeline.h"

#include <fmt/format.h>

#include "api/version.h"
#include "api/view/prediction_json.h"
#include "perfmodel/base/error.h"

namespace commtune::api {
namespace {

using nlohmann::json;

PredictedIteration predict(const PlanView& view) {
  if (!view.priced)
    throw Error(ErrorCode::kNotFound,
                fmt::format("plan {} belongs to no fit of a cluster, so nothing predicts its timeline",
                            digest(view.plan)));
  return predicted_iteration(view.plan, view.profile, view.cluster);
}

json span(Seconds start, Seconds end) {
  return {{"start_seconds", start.count()}, {"end_seconds", end.count()}};
}

/// A gradient tensor with the layer that makes it, by TensorId.
struct NamedTensor {
  const Layer* layer;
  const Tensor* tensor;
};

std::vector<NamedTensor> named_tensors(const Profile& profile) {
  std::vector<NamedTensor> named;
  for (const Layer& layer : profile.layers)
    for (const Tensor& tensor : layer.tensors) named.push_back({&layer, &tensor});
  return named;
}

std::string label_of(const Message& message, const std::vector<NamedTensor>& tensors) {
  const std::string& name = tensors.at(message.pieces.front().tensor).tensor->name;
  return message.pieces.size() == 1 ? name : fmt::format("{} and {} more", name, message.pieces.size() - 1);
}

/// What of a plan with pulls comes back as one; of every other plan nothing.
json pulls_to_json(const PlanView& view, const Timeline& timeline, const std::vector<NamedTensor>& tensors) {
  json pulls = json::array();
  for (std::size_t i = 0; i < view.plan.pulls.size(); ++i) {
    const Message& pull = view.plan.pulls[i];
    const MessageSpan& when = timeline.pulls[i];
    pulls.push_back({{"index", i},
                     {"bytes", message_bytes(pull).count},
                     {"pieces", pull.pieces.size()},
                     {"label", label_of(pull, tensors)},
                     {"released_seconds", when.released.count()},
                     {"distribute", span(when.distribute_start, when.distribute_end)}});
  }
  return pulls;
}

json pieces_to_json(const Message& message, const std::vector<NamedTensor>& tensors) {
  json pieces = json::array();
  for (const Piece& piece : message.pieces) {
    const auto& [layer, tensor] = tensors.at(piece.tensor);
    pieces.push_back({{"tensor", piece.tensor},
                      {"name", tensor->name},
                      {"layer", layer->name},
                      {"offset_bytes", piece.offset.count},
                      {"length_bytes", piece.length.count},
                      {"whole", piece.length == tensor->bytes}});
  }
  return pieces;
}

json trace_event(const std::string& name, int thread, Seconds start, Seconds end, json arguments) {
  return {{"name", name},
          {"ph", "X"},
          {"pid", 0},
          {"tid", thread},
          {"ts", start.count() * 1e6},
          {"dur", (end - start).count() * 1e6},
          {"args", std::move(arguments)}};
}

json thread_name(int thread, const std::string& name) {
  return {{"name", "thread_name"}, {"ph", "M"}, {"pid", 0}, {"tid", thread}, {"args", {{"name", name}}}};
}

}  // namespace

json timeline_to_json(const PlanView& view) {
  const PredictedIteration it = predict(view);
  const bool cast = view.plan.wire != WireFormat::kAsIs;  // beside no bound of lossless plans
  const std::vector<NamedTensor> tensors = named_tensors(view.profile);
  json layers = json::array(), messages = json::array();
  for (std::size_t i = 0; i < view.profile.layers.size(); ++i)
    layers.push_back({{"name", view.profile.layers[i].name},
                      {"backward", span(it.timeline.backward_start[i], it.timeline.backward_end[i])},
                      {"forward", span(it.timeline.forward_start[i], it.timeline.forward_end[i])}});
  for (std::size_t i = 0; i < view.plan.messages.size(); ++i) {
    const Message& message = view.plan.messages[i];
    const MessageSpan& when = it.timeline.messages[i];
    messages.push_back({{"index", i},
                        {"bytes", message_bytes(message).count},
                        {"pieces", message.pieces.size()},
                        {"label", label_of(message, tensors)},
                        {"released_seconds", when.released.count()},
                        {"reduce", span(when.reduce_start, when.reduce_end)},
                        {"distribute", span(when.distribute_start, when.distribute_end)}});
  }
  return {{"plan", view.id ? json(*view.id) : json(nullptr)},
          {"method", view.plan.method},
          {"model", view.plan.model},
          {"road", describe_road(view.plan)},
          {"workers", view.plan.workers},
          {"prediction", prediction_to_json(it.prediction)},
          {"bound_seconds", cast ? json(nullptr) : json(it.bound.count())},
          {"layers", std::move(layers)},
          {"messages", std::move(messages)},
          {"pulls", pulls_to_json(view, it.timeline, tensors)}};
}

json timeline_to_trace(const PlanView& view) {
  enum Thread { kCompute, kReduce, kDistribute };
  const PredictedIteration it = predict(view);
  const std::vector<NamedTensor> tensors = named_tensors(view.profile);
  json events = json::array();
  events.push_back(
      {{"name", "process_name"},
       {"ph", "M"},
       {"pid", 0},
       {"args", {{"name", fmt::format("{}, {} (predicted)", view.plan.model, view.plan.method)}}}});
  events.push_back(thread_name(kCompute, "compute"));
  events.push_back(thread_name(kReduce, "reduce"));
  events.push_back(thread_name(kDistribute, "distribute"));
  const Timeline& t = it.timeline;
  for (std::size_t i = view.profile.layers.size(); i-- > 0;)
    events.push_back(trace_event("backward " + view.profile.layers[i].name, kCompute, t.backward_start[i],
                                 t.backward_end[i], json::object()));
  for (std::size_t i = 0; i < view.profile.layers.size(); ++i)
    events.push_back(trace_event("forward " + view.profile.layers[i].name, kCompute, t.forward_start[i],
                                 t.forward_end[i], json::object()));
  for (std::size_t i = 0; i < view.plan.messages.size(); ++i) {
    const Message& message = view.plan.messages[i];
    const std::string label = label_of(message, tensors);
    const json arguments{
        {"message", i}, {"bytes", message_bytes(message).count}, {"pieces", message.pieces.size()}};
    const MessageSpan& when = t.messages[i];
    events.push_back(trace_event(label, kReduce, when.reduce_start, when.reduce_end, arguments));
    if (view.plan.pulls.empty())
      events.push_back(
          trace_event(label, kDistribute, when.distribute_start, when.distribute_end, arguments));
  }
  for (std::size_t i = 0; i < view.plan.pulls.size(); ++i) {
    const Message& pull = view.plan.pulls[i];
    events.push_back(trace_event(
        label_of(pull, tensors), kDistribute, t.pulls[i].distribute_start, t.pulls[i].distribute_end,
        {{"pull", i}, {"bytes", message_bytes(pull).count}, {"pieces", pull.pieces.size()}}));
  }
  return {{"displayTimeUnit", "ms"},
          {"metadata",
           {{"commtune", kVersion},
            {"plan", digest(view.plan)},
            {"model", view.plan.model},
            {"predicted", true},
            {"predicted_seconds", it.prediction.iteration.count()}}},
          {"traceEvents", std::move(events)}};
}

json messages_to_json(const PlanView& view) {
  const std::vector<NamedTensor> tensors = named_tensors(view.profile);
  const json plan = commtune::to_json(view.plan);
  json rows = json::array();
  for (std::size_t i = 0; i < view.plan.messages.size(); ++i) {
    rows.push_back({{"index", i},
                    {"bytes", message_bytes(view.plan.messages[i]).count},
                    {"priority", view.plan.priority.at(i)},
                    {"pieces", pieces_to_json(view.plan.messages[i], tensors)}});
    if (!view.plan.window.empty()) rows.back()["window_bytes"] = view.plan.window.at(i).count;
    if (!view.plan.server.empty()) rows.back()["server"] = view.plan.server.at(i);
  }
  json pulls = json::array();
  for (std::size_t i = 0; i < view.plan.pulls.size(); ++i) {
    pulls.push_back({{"index", i},
                     {"bytes", message_bytes(view.plan.pulls[i]).count},
                     {"pieces", pieces_to_json(view.plan.pulls[i], tensors)}});
  }
  return {{"plan", view.id ? json(*view.id) : json(nullptr)},
          {"method", view.plan.method},
          {"order", plan.at("order")},
          {"release", plan.at("release")},
          {"barrier", plan.at("barrier")},
          {"credit_bytes", plan.at("credit_bytes")},
          {"rows", std::move(rows)},
          {"pulls", std::move(pulls)}};
}

}  // namespace commtune::api
