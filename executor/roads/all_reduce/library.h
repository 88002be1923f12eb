#pragma once
// The all-reduce of a library (collectives/), whatever algorithm it takes, at once or in two stages. Several
// may be under way, started in the same order on all ranks (as every all-reduce road is).

#include "executor/roads/road.h"

namespace commtune {

/// All throw Error{kUnavailable} where the message has no library.
Task library_all_reduce(RoadMessage message);
/// First stage: every rank has its segment of the result.
Task library_reduce_scatter(RoadMessage message);
/// Second stage: every segment on every rank.
Task library_all_gather(RoadMessage message);

}  // namespace commtune
