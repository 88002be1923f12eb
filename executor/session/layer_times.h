#pragma once
// When a worker computed: what a workload, a recorder and a trace have in common.

#include "executor/transport/transport.h"
#include "perfmodel/base/units.h"

namespace commtune {

/// One layer's steps in one iteration, for the trace.
struct LayerTimes {
  Clock::time_point backward_start, backward_end, forward_start, forward_end;
};

struct IterationTimes {
  Clock::time_point start, end;
  Seconds waited{};  ///< by the compute side, for gradients
};

}  // namespace commtune
