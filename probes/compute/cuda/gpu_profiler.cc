#include "probes/compute/cuda/gpu_profiler.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <span>
#include <vector>

#include "perfmodel/base/error.h"
#include "perfmodel/fit/fit.h"
#include "probes/compute/cuda/layer_steps.h"

namespace commtune::compute {
namespace {

using SteadyClock = std::chrono::steady_clock;
using Progress = std::function<bool(const GpuProfilerProgress&)>;

Seconds time_since(SteadyClock::time_point begin) { return SteadyClock::now() - begin; }

void check_layers(const Architecture& architecture, const Profile& tensors) {
  const auto same = [](const ComputeLayer& a, const Layer& b) { return a.name == b.name; };
  if (std::equal(architecture.layers.begin(), architecture.layers.end(), tensors.layers.begin(),
                 tensors.layers.end(), same)) {
    return;
  }
  throw Error(ErrorCode::kBadInput,
              "model " + architecture.model + ": its shapes and its tensors have other layers");
}

void tell(const Progress& progress, const std::string& what, double fraction, Seconds left) {
  if (progress && !progress({what, fraction, left}))
    throw Error(ErrorCode::kInterrupted, "profile interrupted: nothing is kept of it");
}

/// All passes' times of each layer.
struct Samples {
  std::vector<std::vector<double>> forward, backward, update;
  std::vector<double> sums;

  explicit Samples(std::size_t layers) : forward(layers), backward(layers), update(layers) {}
  void add(const std::vector<LayerTimes>& pass) {
    double sum = 0;
    for (std::size_t i = 0; i < pass.size(); ++i) {
      forward[i].push_back(pass[i].forward.count());
      backward[i].push_back(pass[i].backward.count());
      update[i].push_back(pass[i].update.count());
      sum += (pass[i].forward + pass[i].backward + pass[i].update).count();
    }
    sums.push_back(sum);
  }
  double width() const {
    std::vector<double> sorted = sums;
    return median_interval(sorted).relative_half_width();
  }
};

Samples sample(GpuModel& model, std::size_t layers, const GpuProfilerOptions& options,
               const Progress& progress) {
  const SteadyClock::time_point begin = SteadyClock::now();
  Samples samples(layers);
  for (int pass = 0; pass < options.max_passes; ++pass) {
    const Seconds left = std::max(options.budget - time_since(begin), Seconds{0});
    tell(progress, "layers", static_cast<double>(pass) / options.max_passes, left);
    samples.add(model.layer_pass());
    if (left <= Seconds{0}) break;
    if (pass + 1 >= options.passes && samples.width() <= options.width) break;
  }
  return samples;
}

Seconds median_of(std::vector<double>& values) { return Seconds{median_interval(values).median}; }

ProfileOrigin origin_of(const GpuModel& model, const Architecture& architecture, const Samples& samples,
                        const GpuProfilerOptions& options) {
  ProfileOrigin origin;
  origin.how = "measured";
  origin.device = model.device();
  origin.source = fmt::format("{} and kernels of commtune, images as {}; shapes: {}", model.libraries(),
                              model.layout(), architecture.source);
  const bool is_adam = optimizer_of(architecture) == Optimizer::kAdam;
  origin.note = fmt::format(
      "medians of {} training steps, each layer between two events; half width of their sum's 95 % interval "
      "{:.1f} %. Updates are {}. What has no parameters is added to the layer before it; no dropout, no loss "
      "beyond its softmax, no data loading.",
      samples.sums.size(), 100 * samples.width(), is_adam ? "Adam's" : "SGD's with momentum");
  if (options.model.precision == Precision::kBf16)
    origin.note +=
        " bf16 as PyTorch's autocast: gradients of parameters are float32, casts of weights and "
        "gradients are in these times.";
  return origin;
}

void require(bool holds, const std::string& field, const std::string& value, const std::string& rule) {
  if (!holds) throw Error(ErrorCode::kBadInput, field + " = " + value + ": must be " + rule);
}

}  // namespace

void GpuProfilerOptions::check() const {
  constexpr int kMostBatch = 1 << 20;  // samples: beyond it a number is a slip of the finger
  require(model.gpu >= 0, "gpu", std::to_string(model.gpu), "at least 0");
  require(model.batch >= 0 && model.batch <= kMostBatch, "batch", std::to_string(model.batch),
          "1 to 1048576");
  require(std::isfinite(budget.count()) && budget.count() > 0, "budget",
          std::to_string(budget.count()) + " s", "positive");
  require(std::isfinite(width) && width > 0 && width < 1, "width", std::to_string(width), "between 0 and 1");
  require(passes >= 1, "passes", std::to_string(passes), "at least 1");
  require(max_passes >= passes, "most passes", std::to_string(max_passes),
          "at least the passes, " + std::to_string(passes));
}

void warm_up(GpuModel& model, Seconds least, const std::function<bool(Seconds)>& on_pass) {
  constexpr std::size_t kHalf = 5;
  constexpr double kSteady = 0.01;
  const SteadyClock::time_point begin = SteadyClock::now();
  std::vector<double> times;
  const auto is_steady = [&] {
    if (times.size() < 2 * kHalf) return false;
    const auto middle_of = [](std::span<const double> part) {
      std::vector<double> sorted(part.begin(), part.end());
      return median_interval(sorted).median;
    };
    const std::span<const double> last = std::span<const double>(times).last(2 * kHalf);
    const double before = middle_of(last.first(kHalf)), after = middle_of(last.last(kHalf));
    return std::abs(after - before) <= kSteady * before;
  };
  for (Seconds spent{0}; spent < 5 * least; spent = time_since(begin)) {
    if (spent >= least && is_steady()) return;
    times.push_back(model.whole_pass().count());
    if (on_pass && !on_pass(spent)) return;
  }
}

Profile profile_of_model(GpuModel& model, const Architecture& architecture, const Profile& tensors,
                         const GpuProfilerOptions& options, const Progress& progress) {
  options.check();
  check_layers(architecture, tensors);
  warm_up(model, std::min(options.warm_up, options.budget), [&](Seconds) {
    tell(progress, "warm-up", 0, options.budget);
    return true;
  });
  Samples samples = sample(model, architecture.layers.size(), options, progress);

  Profile profile = tensors;
  profile.batch = options.model.batch == 0 ? tensors.batch : options.model.batch;
  profile.type = DataType::kFloat32;
  profile.origin = origin_of(model, architecture, samples, options);
  for (std::size_t i = 0; i < profile.layers.size(); ++i) {
    profile.layers[i].forward = median_of(samples.forward[i]);
    profile.layers[i].backward = median_of(samples.backward[i]);
    profile.layers[i].update = median_of(samples.update[i]);
  }
  return profile;
}

Profile profile_on_gpu(const Architecture& architecture, const Profile& tensors,
                       const GpuProfilerOptions& options, const Progress& progress) {
  options.check();
  check_layers(architecture, tensors);
  GpuProfilerOptions chosen = options;
  if (chosen.model.batch == 0) chosen.model.batch = tensors.batch;
  tell(progress, "algorithms", 0, options.budget);
  const std::unique_ptr<GpuModel> model = make_gpu_model(architecture, tensors, chosen.model);
  return profile_of_model(*model, architecture, tensors, chosen, progress);
}

}  // namespace commtune::compute
