#include "api/import/profile_from_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "api/import/traced_iterations.h"
#include "perfmodel/base/error.h"
#include "perfmodel/base/units.h"
#include "perfmodel/tensor_limits.h"

namespace commtune::api {
namespace {

struct TypeName {
  std::string_view traced;
  DataType type;
};
constexpr std::array kTypeNames = {TypeName{"float", DataType::kFloat32},
                                   TypeName{"c10::Half", DataType::kFloat16},
                                   TypeName{"c10::BFloat16", DataType::kBfloat16}};

class ProfileMaker {
 public:
  ProfileMaker(const RecordedTrace& trace, const TraceImport& options, std::string_view what)
      : trace_(trace), options_(options), what_(what), iterations_(traced_iterations(trace, what)) {
    for (std::size_t i = 1; i < iterations_.size(); ++i) check_same(i);
  }

  Profile make() const {
    const std::vector<std::size_t> order = forward_order();
    Profile profile = options_.model ? *options_.model : own_layers(order);
    const std::vector<std::size_t> matched = options_.model ? matched_with(profile, order) : order;
    if (options_.batch > 0) profile.batch = options_.batch;
    profile.origin = origin();
    set_times(matched, profile);
    return profile;
  }

 private:
  const TracedIteration& first() const { return iterations_.front(); }
  const TraceEvent& event_of(std::size_t gradient) const {
    return trace_.events[first().gradients[gradient].event];
  }
  bool has_size(std::size_t gradient) const { return !event_of(gradient).type.empty(); }

  [[noreturn]] void fail(std::size_t event, std::string_view why) const {
    throw Error(ErrorCode::kBadInput, fmt::format("{}: {}: {}", what_, place_of(trace_, event), why));
  }

  void check_same(std::size_t iteration) const {
    const TracedIteration& one = iterations_[iteration];
    const auto same = [&](const TracedGradient& a, const TracedGradient& b) {
      return a.layer == b.layer && trace_.events[a.event].shape == trace_.events[b.event].shape;
    };
    const auto [mine, others] = std::ranges::mismatch(one.gradients, first().gradients, same);
    if (mine == one.gradients.end() && others == first().gradients.end()) return;
    const std::size_t at = mine == one.gradients.end() ? one.gradients.back().event : mine->event;
    fail(at, fmt::format(
                 "iteration {} has {} gradients, and from here on others than the first one, which has {}: "
                 "record whole iterations of one model, all of one kind",
                 iteration + 1, one.gradients.size(), first().gradients.size()));
  }

  DataType type_of(std::size_t gradient) const {
    const std::string& given = event_of(gradient).type;
    const auto at = std::ranges::find(kTypeNames, given, &TypeName::traced);
    if (at == kTypeNames.end())
      fail(first().gradients[gradient].event,
           fmt::format("its gradient is of {}: profiles have float32, float16 and bfloat16", given));
    return at->type;
  }

  Bytes bytes_of(std::size_t gradient) const {
    std::uint64_t bytes = element_size(type_of(gradient)).count;
    for (const std::uint64_t size : event_of(gradient).shape) {
      if (size == 0 || size > kLargestTensor / bytes)
        fail(first().gradients[gradient].event,
             fmt::format("its gradient's size must be from 1 B to {}", format_size(Bytes{kLargestTensor})));
      bytes *= size;
    }
    return Bytes{bytes};
  }

  /// Gradients by their layers in the order of the forward pass; those of one in the order in which PyTorch's
  /// modules define parameters, weights before biases, as far as shapes show it.
  std::vector<std::size_t> forward_order() const {
    std::vector<std::size_t> order(first().gradients.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = order.size() - 1 - i;
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
      const std::size_t layer_a = first().gradients[a].layer, layer_b = first().gradients[b].layer;
      return layer_a != layer_b ? layer_a < layer_b : event_of(a).shape.size() > event_of(b).shape.size();
    });
    return order;
  }

  Profile own_layers(const std::vector<std::size_t>& order) const {
    Profile profile;
    profile.model = std::filesystem::path(what_).stem().string();
    if (order.size() > kMostTensors) fail(first().gradients.back().event, "too many gradients for a profile");
    profile.type = has_size(order.front()) ? type_of(order.front()) : DataType::kFloat32;
    profile.layers.resize(first().layers.size());
    for (std::size_t i = 0; i < profile.layers.size(); ++i) profile.layers[i].name = first().layers[i].name;
    for (const std::size_t gradient : order) {
      const TracedGradient& traced = first().gradients[gradient];
      if (!has_size(gradient))
        fail(traced.event,
             "its gradient's size was not recorded: record with record_shapes=True, or name the model with "
             "--model");
      if (type_of(gradient) != profile.type)
        fail(traced.event,
             fmt::format("its gradient is of {}, others are of {}: gradients of several types make no "
                         "profile",
                         event_of(gradient).type, event_of(order.front()).type));
      Layer& layer = profile.layers[traced.layer];
      layer.tensors.push_back({fmt::format("{}.{}", layer.name, layer.tensors.size()), bytes_of(gradient)});
    }
    return profile;
  }

  /// The gradient of each of the model's tensors: the next one of the forward pass that has its size, of the
  /// same layer of the trace as long as there is one. Modules need not run in the order of their definition.
  std::vector<std::size_t> matched_with(const Profile& model, std::vector<std::size_t> order) const {
    const std::vector<TensorRef> tensors = tensors_of(model);
    if (tensors.size() != order.size())
      fail(first().gradients.back().event,
           fmt::format("the trace has {} gradients an iteration, {} has {}: name the model that was traced",
                       order.size(), model.model, tensors.size()));
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const auto has_it = [&](std::size_t gradient) {
        return !has_size(gradient) || bytes_of(gradient) == tensors[i].bytes;
      };
      const auto here = [&](std::size_t gradient) {
        return first().gradients[gradient].layer == first().gradients[order[i]].layer && has_it(gradient);
      };
      const auto from = order.begin() + static_cast<std::ptrdiff_t>(i);
      auto at = std::find_if(from, order.end(), here);
      if (at == order.end()) at = std::find_if(from, order.end(), has_it);
      if (at == order.end())
        fail(first().gradients[order[i]].event,
             fmt::format(
                 "neither this gradient nor a later one has the {} of {}: name the model that was traced",
                 format_size(tensors[i].bytes), name_of(model, i)));
      std::rotate(from, at, at + 1);
    }
    return order;
  }

  /// "fc.weight of resnet50"
  static std::string name_of(const Profile& model, std::size_t tensor) {
    auto layer = model.layers.begin();
    for (; tensor >= layer->tensors.size(); ++layer) tensor -= layer->tensors.size();
    return fmt::format("{} of {}", layer->tensors[tensor].name, model.model);
  }

  Seconds median(std::vector<Seconds> times) const {
    const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
    std::ranges::nth_element(times, middle);
    if (times.size() % 2 == 1) return *middle;
    return (*middle + *std::max_element(times.begin(), middle)) / 2;
  }

  /// matched  of each tensor, the gradient
  void set_times(const std::vector<std::size_t>& matched, Profile& profile) const {
    const std::vector<TensorRef> tensors = tensors_of(profile);
    std::vector<std::vector<Seconds>> forward(profile.layers.size()), backward(profile.layers.size());
    for (const TracedIteration& iteration : iterations_) {
      add_forward(iteration, matched, tensors, forward);
      add_backward(iteration, matched, tensors, backward);
    }
    for (std::size_t i = 0; i < profile.layers.size(); ++i) {
      profile.layers[i].forward = median(std::move(forward[i]));
      profile.layers[i].backward = median(std::move(backward[i]));
      profile.layers[i].update = Seconds{0};
    }
  }

  static void add_forward(const TracedIteration& iteration, const std::vector<std::size_t>& matched,
                          const std::vector<TensorRef>& tensors, std::vector<std::vector<Seconds>>& times) {
    for (std::vector<Seconds>& of_layer : times) of_layer.emplace_back(0);
    std::vector<bool> counted(iteration.layers.size(), false);
    for (std::size_t i = 0; i < matched.size(); ++i) {
      const std::size_t layer = iteration.gradients[matched[i]].layer;
      if (counted[layer]) continue;
      counted[layer] = true;
      times[tensors[i].layer].back() += iteration.layers[layer].forward;
    }
  }

  static void add_backward(const TracedIteration& iteration, const std::vector<std::size_t>& matched,
                           const std::vector<TensorRef>& tensors, std::vector<std::vector<Seconds>>& times) {
    std::vector<Seconds> complete(times.size(), iteration.turned);
    for (std::size_t i = 0; i < matched.size(); ++i) {
      Seconds& of_layer = complete[tensors[i].layer];
      of_layer = std::max(of_layer, iteration.gradients[matched[i]].complete);
    }
    Seconds reached = iteration.turned;
    for (std::size_t layer = times.size(); layer-- > 0;) {
      times[layer].push_back(std::max(Seconds{0}, complete[layer] - reached));
      reached = std::max(reached, complete[layer]);
    }
    times[0].back() += std::max(Seconds{0}, iteration.ended - reached);  // what follows the last gradient
  }

  ProfileOrigin origin() const {
    const bool modules = std::ranges::any_of(
        trace_.events, [](const TraceEvent& event) { return event.kind == TraceEventKind::kModule; });
    return {
        "measured", trace_.device,
        fmt::format("{}: {} iteration{} of a trace", std::filesystem::path(what_).filename().string(),
                    iterations_.size(), iterations_.size() == 1 ? "" : "s"),
        fmt::format("Layers are the trace's {}, in the order in which they ran{}; the optimizer is not timed "
                    "(update_seconds is 0). Times have what recording the trace took{}.",
                    modules ? "modules" : "operators with parameters",
                    options_.model ? ", with the names and sizes of " + options_.model->model : "",
                    modules ? ", which is more where Python is traced" : "")};
  }

  const RecordedTrace& trace_;
  const TraceImport& options_;
  const std::string_view what_;
  const std::vector<TracedIteration> iterations_;
};

}  // namespace

Profile profile_from_trace(const RecordedTrace& trace, const TraceImport& options, std::string_view what) {
  const Profile profile = ProfileMaker(trace, options, what).make();
  try {
    return profile_from_json(to_json(profile));  // names and times are held to the limits of any profile
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: as a profile: {}", what, error.what()));
  }
}

}  // namespace commtune::api
