#pragma once
// One operation of a road on one message, as a coroutine: the roads of the executor by their probes' names.

#include <vector>

#include "executor/roads/parameter_server.h"
#include "executor/roads/road.h"
#include "executor/task.h"
#include "perfmodel/cluster.h"
#include "perfmodel/plan.h"

namespace commtune::probes {

/// This rank's part, as a worker, of `operation` on one message.
/// here    the server in this process; nullptr when there is none
/// throws  Error{kUnavailable} where the executor does not have it
Task run_operation(const Road& road, Operation operation, const RoadMessage& message, Server* here);

/// Whether this executor can run it.
bool is_offered(const Road& road);

/// What this executor can run on this many workers, of the algorithms asked for (all if none is named).
std::vector<Collective> available_algorithms(const std::vector<Collective>& wanted);

/// Whether the algorithm's two stages can be run and timed apart.
bool has_stages(Collective algorithm);

}  // namespace commtune::probes
