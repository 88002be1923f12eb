#pragma once
// When a worker computed: what a replay and a trace have in common.

#include "executor/transport/transport.h"

namespace commtune {

/// One layer's steps in one iteration, for the trace.
struct LayerTimes {
  Clock::time_point backward_start, backward_end, forward_start, forward_end;
};

}  // namespace commtune
