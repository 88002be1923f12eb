#pragma once
// A model's layers, timed on a GPU within whole training steps.

#include <functional>
#include <string>

#include "perfmodel/profile.h"
#include "probes/compute/architecture.h"
#include "probes/compute/cuda/gpu_model.h"

namespace commtune::compute {

struct GpuProfilerOptions {
  GpuModelOptions model;  ///< batch 0: the one of the profile that lends the tensors
  Seconds budget{60};     ///< wall time of the passes; some are made at least, whatever the budget
  double width = 0.03;    ///< done when the half width of their sum's 95 % interval is so narrow
  int passes = 20;        ///< at least, if the budget allows
  int max_passes = 500;
  Seconds warm_up{1};  ///< at least: clocks rise in the first tenths of a second of work
  void check() const;  ///< throws Error{kBadInput} naming field, value and rule
};

struct GpuProfilerProgress {
  std::string what;
  double fraction = 0;
  Seconds left{};
};

/// Runs whole passes until their times are steady, then times every layer's forward, backward and update in
/// pass after pass, and takes medians.
///
/// tensors   a profile of the same model: its layers' gradient tensors and their order are taken
/// progress  called between passes; false ends it with Error{kInterrupted}; may be empty
/// returns   a profile whose origin says device, libraries, precision, and how narrow the times are.
/// Gradients
///           are float32 in every precision: in bf16 that is what PyTorch's autocast keeps.
/// throws    Error{kBadInput} if the layers' names differ; as make_gpu_model()
Profile profile_on_gpu(const Architecture& architecture, const Profile& tensors,
                       const GpuProfilerOptions& options,
                       const std::function<bool(const GpuProfilerProgress&)>& progress = {});

/// The same with a model that is made already; options.model says its batch.
Profile profile_of_model(GpuModel& model, const Architecture& architecture, const Profile& tensors,
                         const GpuProfilerOptions& options,
                         const std::function<bool(const GpuProfilerProgress&)>& progress = {});

/// Whole passes until they are steady: half of them within 1 % of the other half, `least` over, or five times
/// that.
/// on_pass  called after each pass with the time so far; false ends it
void warm_up(GpuModel& model, Seconds least, const std::function<bool(Seconds)>& on_pass = {});

}  // namespace commtune::compute
