#pragma once
// How much a rank may send under a plan: what transports hold sizes from the wire against.

#include "executor/roads/road.h"
#include "executor/transport/transport.h"
#include "perfmodel/plan.h"
#include "perfmodel/tensor_layout.h"

namespace commtune {

/// plan  satisfies check(plan, layout)
MessageLimits message_limits(const Plan& plan, const TensorLayout& layout, const RoadSettings& settings);

}  // namespace commtune
