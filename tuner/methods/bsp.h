#pragma once
// Bulk-synchronous training: everything at once after the backward pass.

#include "tuner/planning.h"

namespace commtune::tuner {

/// All gradients in one message after the backward pass. Over servers it is cut into BytePS's 4,096,000 B, as
/// the survey ran it; servers that take messages whole get them by BytePS's hash.
Plan bsp(const Planning& job, const RoadOption& option);

}  // namespace commtune::tuner
