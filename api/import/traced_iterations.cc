#include "api/import/traced_iterations.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "perfmodel/base/error.h"

namespace commtune::api {
namespace {

constexpr std::size_t kNothing = std::numeric_limits<std::size_t>::max();
constexpr std::string_view kModuleName = "nn.Module: ";
constexpr std::string_view kAccumulation =
    "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad";

/// Where an event lies: indices of others, or kNothing.
struct Nesting {
  std::size_t top = kNothing;  ///< the outermost operator around it that has a sequence number, or itself
  std::size_t evaluation = kNothing;  ///< the function of the backward pass around it, or itself
  std::size_t module = kNothing;      ///< the innermost module around it
  std::size_t root = kNothing;        ///< the outermost one
};

/// Indices of what a processor did, by the time at which it began; what is around something goes before it.
std::vector<std::size_t> in_order(const RecordedTrace& trace) {
  std::vector<std::size_t> order(trace.events.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::erase_if(order, [&](std::size_t i) { return trace.events[i].kind == TraceEventKind::kDevice; });
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    const TraceEvent &first = trace.events[a], &second = trace.events[b];
    return first.start != second.start ? first.start < second.start : first.end > second.end;
  });
  return order;
}

std::vector<Nesting> nestings(const RecordedTrace& trace, const std::vector<std::size_t>& order) {
  std::vector<Nesting> all(trace.events.size());
  std::unordered_map<std::int64_t, std::vector<std::size_t>> open;
  for (const std::size_t i : order) {
    const TraceEvent& event = trace.events[i];
    std::vector<std::size_t>& stack = open[event.thread];
    while (!stack.empty() && trace.events[stack.back()].end <= event.start) stack.pop_back();
    Nesting nesting = stack.empty() ? Nesting{} : all[stack.back()];
    if (event.kind == TraceEventKind::kModule) {
      nesting.module = i;
      if (nesting.root == kNothing) nesting.root = i;
    } else {
      if (nesting.top == kNothing && event.sequence)
        nesting.top = i;  // not an annotation around a whole step
      if (event.kind == TraceEventKind::kEvaluation) nesting.evaluation = i;
    }
    all[i] = nesting;
    stack.push_back(i);
  }
  return all;
}

/// What one iteration did, by index, in order.
struct RawIteration {
  std::vector<std::size_t> forward;      ///< operators that a backward pass may follow
  std::vector<std::size_t> evaluations;  ///< functions of the backward pass
};

/// An iteration begins with the first operator of a forward pass after a backward pass.
std::vector<RawIteration> split(const RecordedTrace& trace, const std::vector<std::size_t>& order,
                                const std::vector<Nesting>& nesting) {
  std::vector<RawIteration> iterations;
  for (const std::size_t i : order) {
    const TraceEvent& event = trace.events[i];
    if (event.kind == TraceEventKind::kEvaluation) {
      if (iterations.empty()) iterations.emplace_back();
      iterations.back().evaluations.push_back(i);
    } else if (event.kind == TraceEventKind::kOperator && event.sequence &&
               nesting[i].evaluation == kNothing) {
      if (iterations.empty() || !iterations.back().evaluations.empty()) iterations.emplace_back();
      iterations.back().forward.push_back(i);
    }
  }
  std::erase_if(iterations, [&](const RawIteration& one) {
    return std::ranges::none_of(one.evaluations,
                                [&](std::size_t i) { return trace.events[i].name == kAccumulation; });
  });
  return iterations;
}

/// Of kernels that an operator or a function of the backward pass launched.
struct KernelTimes {
  Seconds first{std::numeric_limits<double>::infinity()}, last{-std::numeric_limits<double>::infinity()};
};

/// Kernels by the outermost event that launched them; empty where a processor computed.
std::unordered_map<std::size_t, KernelTimes> kernels_of(const RecordedTrace& trace,
                                                        const std::vector<Nesting>& nesting) {
  std::unordered_map<std::size_t, KernelTimes> all;
  for (const TraceEvent& event : trace.events) {
    if (event.kind != TraceEventKind::kDevice || !event.launcher) continue;
    if (event.name.starts_with("nccl")) continue;
    const Nesting& launcher = nesting[*event.launcher];
    KernelTimes& times = all[launcher.evaluation != kNothing ? launcher.evaluation : launcher.top];
    times.first = std::min(times.first, event.start);
    times.last = std::max(times.last, event.end);
  }
  return all;
}

class IterationReader {
 public:
  IterationReader(const RecordedTrace& trace, std::string_view what)
      : trace_(trace),
        what_(what),
        order_(in_order(trace)),
        nesting_(nestings(trace, order_)),
        kernels_(kernels_of(trace, nesting_)) {
    for (const std::size_t i : order_)
      if (trace.events[i].kind == TraceEventKind::kGradient && nesting_[i].evaluation != kNothing)
        gradient_in_[nesting_[i].evaluation] = i;
  }

  std::vector<TracedIteration> read() const {
    std::vector<TracedIteration> out;
    for (const RawIteration& raw : split(trace_, order_, nesting_)) out.push_back(read(raw));
    if (out.empty())
      throw Error(
          ErrorCode::kBadInput,
          fmt::format("{}: {}: no \"{}\": record whole training iterations with PyTorch's profiler, with "
                      "their backward passes, in the process that trains",
                      what_, trace_.list, kAccumulation));
    return out;
  }

 private:
  /// What an operator of the forward pass belongs to.
  struct LayerKey {
    std::string name;  ///< the innermost module's, else the outermost operator's
    std::size_t top;   ///< index of that operator; kNothing: it is a module
    bool operator<(const LayerKey& other) const {
      return std::tie(name, top) < std::tie(other.name, other.top);
    }
  };

  LayerKey key_of(std::size_t event) const {
    const std::size_t top = nesting_[event].top;
    const std::size_t module = nesting_[top].module;
    if (module == kNothing) return {trace_.events[top].name, top};
    return {trace_.events[module].name.substr(kModuleName.size()), kNothing};
  }

  TracedIteration read(const RawIteration& raw) const {
    TracedIteration out;
    std::map<LayerKey, std::size_t> layers;
    const std::vector<std::pair<LayerKey, std::size_t>> owners = owners_of(raw);
    for (const auto& [key, evaluation] : owners) layers.emplace(key, kNothing);
    read_forward(raw, layers, out);
    read_backward(raw, owners, layers, out);
    return out;
  }

  /// Each gradient's layer and evaluation: it is accumulated right after the function that made it.
  std::vector<std::pair<LayerKey, std::size_t>> owners_of(const RawIteration& raw) const {
    std::unordered_map<std::int64_t, std::size_t> by_sequence;  // the last to begin is the one that made it
    for (const std::size_t i : raw.forward) by_sequence[*trace_.events[i].sequence] = i;
    std::unordered_map<std::int64_t, std::size_t> latest;  // function, by thread
    std::vector<std::pair<LayerKey, std::size_t>> owners;
    for (const std::size_t i : raw.evaluations) {
      const TraceEvent& event = trace_.events[i];
      if (event.name != kAccumulation) {
        latest[event.thread] = i;
        continue;
      }
      const auto function = latest.find(event.thread);
      if (function == latest.end())
        fail(i, "no function of the backward pass goes before it: record whole iterations");
      const std::optional<std::int64_t> sequence = trace_.events[function->second].sequence;
      if (!sequence) fail(function->second, "has no sequence number: trace with a newer PyTorch");
      const auto made_by = by_sequence.find(*sequence);
      if (made_by == by_sequence.end())
        fail(function->second,
             fmt::format(
                 "no operator of the forward pass has its sequence number {}: begin the trace before an "
                 "iteration's forward pass",
                 *sequence));
      owners.emplace_back(key_of(made_by->second), i);
    }
    return owners;
  }

  /// When an operator of the forward pass began to compute; nothing if it launched no kernel.
  std::optional<Seconds> began(std::size_t top) const {
    if (kernels_.empty()) return trace_.events[top].start;
    const auto at = kernels_.find(top);
    if (at == kernels_.end()) return std::nullopt;
    return at->second.first;
  }

  /// When the model began: its outermost module, or the first operator with parameters. On a device that is
  /// the first kernel from there on.
  std::optional<Seconds> beginning(const RawIteration& raw, std::size_t first) const {
    const std::size_t root = nesting_[first].root;
    const std::size_t outermost = root == kNothing ? nesting_[first].top : root;
    if (kernels_.empty()) return trace_.events[outermost].start;
    for (const std::size_t i : raw.forward) {
      const std::size_t top = nesting_[i].top;
      if (trace_.events[top].start < trace_.events[outermost].start) continue;
      if (const std::optional<Seconds> now = began(top)) return now;
    }
    return std::nullopt;
  }

  void read_forward(const RawIteration& raw, std::map<LayerKey, std::size_t>& layers,
                    TracedIteration& out) const {
    const auto is_layer = [&](std::size_t i) { return layers.contains(key_of(i)); };
    std::optional<Seconds> since = beginning(raw, *std::ranges::find_if(raw.forward, is_layer));
    std::size_t layer = kNothing, previous = kNothing;
    for (const std::size_t i : raw.forward) {
      const std::size_t top = nesting_[i].top;
      if (std::exchange(previous, top) == top || !is_layer(i)) continue;
      std::size_t& number = layers.at(key_of(i));
      if (number == kNothing) {
        number = out.layers.size();
        out.layers.push_back({name_of(key_of(i), number), top, {}});
      }
      const std::optional<Seconds> now = began(top);
      if (now && layer != kNothing) {
        out.layers[layer].forward += std::max(Seconds{0}, *now - *since);
        since = std::max(*since, *now);
      }
      if (now || layer == kNothing) layer = number;
    }
    out.turned = turned(raw);
    if (since) out.layers[layer].forward += std::max(Seconds{0}, out.turned - *since);
  }

  Seconds turned(const RawIteration& raw) const {
    if (kernels_.empty()) return trace_.events[raw.evaluations.front()].start;
    Seconds first{std::numeric_limits<double>::infinity()};
    for (const std::size_t i : raw.evaluations)
      if (const auto at = kernels_.find(i); at != kernels_.end()) first = std::min(first, at->second.first);
    if (!(first.count() < std::numeric_limits<double>::infinity()))
      fail(raw.evaluations.front(),
           "nothing of the backward pass ran on the device: trace its activities as well");
    return first;
  }

  void read_backward(const RawIteration& raw, const std::vector<std::pair<LayerKey, std::size_t>>& owners,
                     const std::map<LayerKey, std::size_t>& layers, TracedIteration& out) const {
    auto owner = owners.begin();
    Seconds reached = out.turned;
    for (const std::size_t i : raw.evaluations) {
      if (kernels_.empty())
        reached = std::max(reached, trace_.events[i].end);
      else if (const auto at = kernels_.find(i); at != kernels_.end())
        reached = std::max(reached, at->second.last);
      if (owner == owners.end() || owner->second != i) continue;
      const auto inner = gradient_in_.find(i);
      out.gradients.push_back(
          {layers.at(owner->first), inner == gradient_in_.end() ? i : inner->second, reached});
      ++owner;
    }
    out.ended = reached;
  }

  static std::string name_of(const LayerKey& key, std::size_t number) {
    return key.top == kNothing ? key.name : fmt::format("{} #{}", key.name, number);
  }

  [[noreturn]] void fail(std::size_t event, std::string_view why) const {
    throw Error(ErrorCode::kBadInput, fmt::format("{}: {}: {}", what_, place_of(trace_, event), why));
  }

  const RecordedTrace& trace_;
  const std::string_view what_;
  const std::vector<std::size_t> order_;
  const std::vector<Nesting> nesting_;
  const std::unordered_map<std::size_t, KernelTimes> kernels_;
  std::unordered_map<std::size_t, std::size_t> gradient_in_;  // by the evaluation around it
};

}  // namespace

std::string place_of(const RecordedTrace& trace, std::size_t event) {
  const TraceEvent& of = trace.events[event];
  constexpr std::size_t kMostShown = 100;
  std::string name = of.name.substr(0, kMostShown);
  std::ranges::replace_if(
      name, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
  return fmt::format("{}[{}] \"{}\"", trace.list, of.position, name);
}

std::vector<TracedIteration> traced_iterations(const RecordedTrace& trace, std::string_view what) {
  return IterationReader(trace, what).read();
}

}  // namespace commtune::api
