#pragma once
// A model on a GPU, whose training steps are run and timed. Knows nothing of CUDA: also there in a build
// without it.

#include <memory>
#include <string>
#include <vector>

#include "perfmodel/profile.h"
#include "probes/compute/architecture.h"
#include "probes/compute/cuda/precision.h"

namespace commtune::compute {

struct LayerTimes {
  Seconds forward{}, backward{}, update{};
};

class GpuModel {
 public:
  virtual ~GpuModel() = default;

  /// A training step, all layers forward, all backward and all updates, with an event between layers. All of
  /// it is queued behind a kernel that waits, so that the GPU never waits for the host.
  virtual std::vector<LayerTimes> layer_pass() = 0;
  /// The same calls in the same order, with one event before and one behind all of them.
  virtual Seconds whole_pass() = 0;

  virtual std::string device() const = 0;     ///< "NVIDIA H100 80GB HBM3, driver for CUDA 13.0, bf16"
  virtual std::string libraries() const = 0;  ///< "cuDNN 9.20.0, cuBLAS 13.1.1"
  virtual std::string layout() const = 0;     ///< of images: "NHWC"
};

struct GpuModelOptions {
  int gpu = 0;  ///< as the driver counts them
  int batch = 0;
  Precision precision = Precision::kFp32;
  std::vector<std::string> library_folders;  ///< where cuDNN and cuBLAS may be, beside the library path
};

/// Why make_gpu_model() cannot make any here, in one line; empty: it can.
std::string why_no_gpu_model(const std::vector<std::string>& library_folders);

/// Allocates and fills all memory, and lets cuDNN try its algorithms on each shape: seconds. The GPU is
/// current in the calling thread, which is the one that may use the result.
///
/// throws  Error{kUnavailable} in one line where this build has no CUDA or this host no driver, GPU, cuDNN or
///         cuBLAS, where a library refuses a call, or where memory does not suffice; Error{kBadInput} where
///         there is no GPU of this number
std::unique_ptr<GpuModel> make_gpu_model(const Architecture& architecture, const Profile& tensors,
                                         const GpuModelOptions& options);

}  // namespace commtune::compute
