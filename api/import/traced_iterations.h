#pragma once
// The training iterations in a trace: which layers computed when, and when their gradients were there.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/import/trace_event.h"
#include "perfmodel/base/units.h"
#include "perfmodel/profile.h"

namespace commtune::api {

struct TracedGradient {
  std::size_t layer = 0;  ///< index in the iteration's layers
  std::size_t event = 0;  ///< index of its event in the trace
  Seconds complete{};
};

/// What has parameters: a module where the trace has modules, else an operator of the forward pass.
struct TracedLayer {
  std::string name;       ///< "Conv2d_0", or "aten::conv2d" and its number among the layers
  std::size_t event = 0;  ///< index of its first event in the trace
  Seconds forward{};      ///< from its first operation to the next layer's
};

struct TracedIteration {
  std::vector<TracedLayer> layers;        ///< in the order of the forward pass
  std::vector<TracedGradient> gradients;  ///< in the order in which they were there
  Seconds turned{}, ended{};              ///< the backward pass
};

/// Of every forward pass that a backward pass follows; at least one.
///
/// Where a GPU computed, times are those of its kernels, without NCCL's. A layer's forward time lasts until
/// the next layer begins; what has no parameters counts for the layer before it.
///
/// what    names the trace in errors
/// throws  Error{kBadInput} naming the event and the fix: where there is no backward pass, or a gradient
/// whose
///         operator the trace does not have
std::vector<TracedIteration> traced_iterations(const RecordedTrace& trace, std::string_view what);

/// "traceEvents[57] "torch::autograd::AccumulateGrad"": an event in an error.
std::string place_of(const RecordedTrace& trace, std::size_t event);

}  // namespace commtune::api
