#pragma once
// What a plan's messages cost where they are cast while they travel. MODEL.md section 4.7.

#include "perfmodel/cluster.h"
#include "perfmodel/cost/stage_cost.h"
#include "perfmodel/plan.h"
#include "perfmodel/profile.h"

namespace commtune {

/// The cluster as plans see it that cast: road_cost() on it is by bytes on the wire, with what casting and
/// adding in that type take. Throws Error{kNotFound} "unknown for bf16" where that was not probed; other
/// transports over which it was not are left out.
Cluster cast_to(Cluster cluster, WireFormat wire);

/// The profile as the network sees it then: its tensors have the wire's type and sizes. Throws
/// Error{kBadInput} where gradients are not of float32.
Profile cast_to(Profile profile, WireFormat wire);

/// The cost of a plan's road for its messages, by bytes on the wire (wire_bytes()). Throws what road_cost()
/// and cast_to() throw.
RoadCost plan_cost(const Plan& plan, const Cluster& cluster);

}  // namespace commtune
