#pragma once
// Fewer messages where they cost nothing: each is work for the hosts' cores, which no cost of a road counts.

#include <cstdint>
#include <span>

#include "perfmodel/simulate/simulate.h"
#include "tuner/planning.h"
#include "tuner/search/stream_plan.h"

namespace commtune::tuner {

/// How long the iteration may take on a road that costs this.
struct Allowed {
  RoadCost cost;
  Seconds time{};
};

/// Merges neighbouring messages of a stream plan while it keeps to all that is allowed, or until the
/// simulator has reached `max_events` or time is out. Returns whether the stream plan kept to it in the first
/// place; one that does not stays as it is. Deterministic.
bool merge_messages(StreamPlan& stream_plan, const GradientStream& stream, Simulator& simulator,
                    std::span<const Allowed> allowed, std::uint64_t max_events,
                    const OutOfTime& out_of_time = {});

}  // namespace commtune::tuner
