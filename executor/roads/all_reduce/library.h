#pragma once
// The all-reduce of a library (collectives/), whatever algorithm it takes. One stage only; several may be
// under way, started in the same order on all ranks (as every all-reduce road is).

#include "executor/roads/road.h"

namespace commtune {

/// throws Error{kUnavailable} where the message has no library.
Task library_all_reduce(RoadMessage message);

}  // namespace commtune
