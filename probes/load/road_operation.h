#pragma once
// One operation of a road on one message, as a coroutine: the roads of the executor by their probes' names.

#include <span>

#include "executor/base/task.h"
#include "executor/roads/parameter_server/parameter_server.h"
#include "executor/roads/road.h"
#include "perfmodel/cluster.h"
#include "perfmodel/plan.h"

namespace commtune::probes {

/// This rank's part, as a worker, of `operation` on one message.
/// here    the server in this process; nullptr when there is none
/// throws  Error{kUnavailable} where the executor does not have it
Task run_operation(const Road& road, Operation operation, const RoadMessage& message, Server* here);

/// Every algorithm of the executor. kLibrary's runs only where a message has a library.
std::span<const Collective> all_algorithms();

/// Whether the algorithm's two stages can be run and timed apart.
bool has_stages(Collective algorithm);

}  // namespace commtune::probes
