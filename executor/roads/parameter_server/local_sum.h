#pragma once
// Parameter servers behind a sum inside every host (as BytePS does: Jiang et al., OSDI 2020).
//
// Reduce: the workers of a host sum inside it (inside_host.h), then each owner of a part pushes that part of
// the host's sum. Distribute: its answer comes back to it, and it hands the part to the others of its host.
//
// Bytes per host and message of m bytes, one direction: m to all servers and m back, whatever the number of
// workers on it; without a local sum that many times as much. Inside, (g-1)/g m per worker and stage.
//
// Workers of a host need each other before anything reaches a server, so that all must start messages in the
// same order (needs_one_order, perfmodel/plan.h).

#include "executor/roads/parameter_server/parameter_server.h"

namespace commtune {

/// A worker's side of one message.
/// here  the server in this process; nullptr when there is none
Task push_pull_host_sum(RoadMessage message, const ParameterServer& road, Server* here);

}  // namespace commtune
