#pragma once
// Local moves on a stream plan, judged by the simulator.

#include <cstdint>

#include "perfmodel/simulate/simulate.h"
#include "tuner/planning.h"
#include "tuner/search/stream_plan.h"

namespace commtune::tuner {

struct LocalSearchLimits {
  double good_enough = 0;        ///< seconds: stop when the iteration is no longer than this
  std::uint64_t max_events = 0;  ///< stop when the simulator has reached this count of events
  OutOfTime out_of_time{};
};

/// Makes a stream plan faster by moving steps, shifting ends, merging and splitting messages, until no move
/// helps or a limit is reached. Deterministic. Returns the iteration time of the result.
double local_search(StreamPlan& stream_plan, const GradientStream& stream, const RoadCost& cost,
                    Simulator& simulator, const LocalSearchLimits& limits);

}  // namespace commtune::tuner
