#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "executor/memory/cuda/device.h"
#include "perfmodel/base/error.h"
#include "probes/compute/cuda/cuda_math.h"
#include "probes/compute/cuda/gpu_model.h"
#include "probes/compute/cuda/layer_steps.h"

namespace commtune::compute {
namespace {

using SteadyClock = std::chrono::steady_clock;

std::vector<cuda::Event> timing_events(std::size_t count) {
  std::vector<cuda::Event> events;
  events.reserve(count);
  for (std::size_t i = 0; i < count; ++i) events.emplace_back(cuda::Event::Use::kTime);
  return events;
}

void run(const std::vector<Step>& steps) {
  for (const Step& step : steps) step();
}

GpuLibraries libraries_in(const std::vector<std::string>& folders) {
  GpuLibraries libraries = load_gpu_libraries(folders);
  if (!libraries.why_not.empty()) throw Error(ErrorCode::kUnavailable, libraries.why_not);
  return libraries;
}

class CudaModel final : public GpuModel {
 public:
  CudaModel(const Architecture& architecture, const Profile& tensors, const GpuModelOptions& options)
      : precision_(options.precision), gpu_(options.gpu), math_(made_current(options)) {
    layers_ = steps_of(architecture, tensors, options.batch, options.precision, math_);
    for (auto* events : {&forward_, &backward_, &update_}) *events = timing_events(layers_.size() + 1);
    measure_lead();
  }

  std::vector<LayerTimes> layer_pass() override {
    const std::size_t count = layers_.size();
    queue(forward_, [&](std::size_t i) { run(layers_[i].forward); });
    queue(backward_, [&](std::size_t i) { run(layers_[count - 1 - i].backward); });
    queue(update_, [&](std::size_t i) { run(layers_[i].update); });
    math_.stream().synchronize();
    std::vector<LayerTimes> times(count);
    for (std::size_t i = 0; i < count; ++i) {
      times[i].forward = forward_[i + 1].since(forward_[i]);
      times[count - 1 - i].backward = backward_[i + 1].since(backward_[i]);
      if (!layers_[i].update.empty()) times[i].update = update_[i + 1].since(update_[i]);
    }
    return times;
  }

  Seconds whole_pass() override {
    math_.keep_busy(lead_);
    forward_.front().record(math_.stream());
    queue_all();
    forward_.back().record(math_.stream());
    math_.stream().synchronize();
    return forward_.back().since(forward_.front());
  }

  std::string device() const override {
    const int version = cuda::loaded().version;
    return fmt::format("{}, driver for CUDA {}.{}, {}", gpu_.name(), version / 1000, version % 1000 / 10,
                       to_string(precision_));
  }
  std::string libraries() const override { return math_.versions(); }
  std::string layout() const override { return math_.layout(); }

 private:
  /// Between the making of gpu_ and of what needs it to be current.
  CudaMath made_current(const GpuModelOptions& options) const {
    gpu_.current();
    return CudaMath(libraries_in(options.library_folders), options.precision);
  }

  /// All layers behind a kernel that takes the lead, an event before each and one behind the last.
  template <typename RunLayer>
  void queue(std::vector<cuda::Event>& events, const RunLayer& run_layer) {
    math_.keep_busy(lead_);
    events.front().record(math_.stream());
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      run_layer(i);
      events[i + 1].record(math_.stream());
    }
  }

  void queue_all() {
    for (const LayerSteps& layer : layers_) run(layer.forward);
    for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer) run(layer->backward);
    for (const LayerSteps& layer : layers_) run(layer.update);
  }

  /// How long the host needs to queue a pass: the GPU is kept waiting for longer than that. The driver holds
  /// the host back once some thousand kernels are queued, so a longer wait than the most would gain nothing.
  void measure_lead() {
    constexpr int kPasses = 3;  // the first loads kernels
    constexpr Seconds kLeast{0.001}, kMost{0.03};
    Seconds fastest = kMost;
    for (int i = 0; i < kPasses; ++i) {
      const SteadyClock::time_point begin = SteadyClock::now();
      queue_all();
      fastest = std::min<Seconds>(fastest, SteadyClock::now() - begin);
      math_.stream().synchronize();
    }
    lead_ = std::clamp<Seconds>(1.5 * fastest, kLeast, kMost);
  }

  const Precision precision_;
  cuda::Gpu gpu_;
  CudaMath math_;
  std::vector<LayerSteps> layers_;
  std::vector<cuda::Event> forward_, backward_, update_;  // at the boundaries of layers
  Seconds lead_{};
};

}  // namespace

std::string why_no_gpu_model(const std::vector<std::string>& library_folders) {
  if (!cuda::loaded().why_not.empty()) return cuda::loaded().why_not;
  return load_gpu_libraries(library_folders).why_not;
}

std::unique_ptr<GpuModel> make_gpu_model(const Architecture& architecture, const Profile& tensors,
                                         const GpuModelOptions& options) {
  return std::make_unique<CudaModel>(architecture, tensors, options);
}

}  // namespace commtune::compute
