#pragma once
// Which algorithm sums a message over all workers, by its name in a plan.

#include "executor/roads/road.h"

namespace commtune {

/// An all-reduce algorithm: all_reduce runs both stages as one operation; the stages can also run apart
/// (decoupled plans), with the same tags, reduce before distribute. One-stage algorithms have none.
struct AllReduceAlgorithm {
  Task (*all_reduce)(RoadMessage);
  Task (*reduce)(RoadMessage) = nullptr;
  Task (*distribute)(RoadMessage) = nullptr;
};

/// Of every collective; kLibrary's throws Error{kUnavailable} where the message has no library.
AllReduceAlgorithm algorithm(Collective collective);

}  // namespace commtune
