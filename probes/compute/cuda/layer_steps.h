#pragma once
// Which calls a model's layers make on a GPU: one training step of the whole model, layer by layer.

#include <vector>

#include "perfmodel/profile.h"
#include "probes/compute/architecture.h"
#include "probes/compute/cuda/gpu_math.h"
#include "probes/compute/cuda/precision.h"

namespace commtune::compute {

struct LayerSteps {
  std::vector<Step> forward;
  std::vector<Step> backward;  ///< in the order of the backward pass
  std::vector<Step> update;    ///< the optimizer's
};

/// SGD with momentum, and Adam for models with tables of words, which are trained with it.
enum class Optimizer { kMomentum, kAdam };
Optimizer optimizer_of(const Architecture& architecture);

/// Memory is allocated and filled as in training: every activation is kept from its forward to its backward
/// pass, a layer reads what the one before it wrote (where sizes agree: shortcuts read memory of their own),
/// and gradients of activations take turns in two buffers. In bf16, as PyTorch's autocast does it, parameters
/// and their gradients are float32: a layer that multiplies casts its weights before its forward pass, and
/// their gradient after its backward one. Updates have a rate of 0: a thousand passes leave the weights as
/// they are, which no time depends on.
///
/// tensors  a profile of the same model, layer by layer: what an update updates
/// throws   what math throws
std::vector<LayerSteps> steps_of(const Architecture& architecture, const Profile& tensors, int batch,
                                 Precision precision, GpuMath& math);

}  // namespace commtune::compute
