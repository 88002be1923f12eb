#pragma once
// What a profile is made from: the events of a trace that PyTorch's profiler or Chakra's observer recorded,
// in one form.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "perfmodel/base/units.h"

namespace commtune::api {

enum class TraceEventKind {
  kOperator,    ///< "aten::conv2d": of the forward pass where it lies in no kEvaluation
  kModule,      ///< "nn.Module: Conv2d_0", the call of one; only where Python was traced as well
  kEvaluation,  ///< "autograd::engine::evaluate_function: ...": one function of the backward pass
  kGradient,    ///< "torch::autograd::AccumulateGrad": inside an evaluation, where a gradient is there
  kDevice,      ///< a kernel or a copy on a GPU
};

struct TraceEvent {
  TraceEventKind kind = TraceEventKind::kOperator;
  std::string name;
  std::size_t position = 0;  ///< in the file's list
  Seconds start{}, end{};    ///< since any moment that all of them share
  std::int64_t thread = 0;
  std::optional<std::int64_t> sequence;  ///< joins an operator and the function of its backward pass
  std::string type;                  ///< of a gradient, as the trace names it: "float"; empty: not recorded
  std::vector<std::uint64_t> shape;  ///< of a gradient
  std::optional<std::size_t> launcher;  ///< of a device's event: index of the operator that launched it
};

struct RecordedTrace {
  std::string list;                ///< what the file calls its list of events: "traceEvents"
  std::string device;              ///< what computed, as far as the trace says; may be empty
  std::vector<TraceEvent> events;  ///< in any order
};

}  // namespace commtune::api
