#pragma once
// Merged-gradient wait-free back-propagation (Shi et al., INFOCOM 2019), and the same problem solved exactly.

#include "tuner/planning.h"
#include "tuner/search/fusion.h"

namespace commtune::tuner {

/// What fusion decides over: the profile's tensors in the order in which they appear.
FusionJob fusion_job(const Planning& job);

/// Neighbours fused by the published greedy rule, with a line fitted to 32 KiB ... 2016 KiB as published.
Plan mg_wfbp(const Planning& job, const RoadOption& option);

/// Neighbours fused so that the last gradient is back as early as any such fusion allows: MODEL.md section 5.
/// The cost's true shape is taken into account.
Plan exact_fusion_plan(const Planning& job, const RoadOption& option);

}  // namespace commtune::tuner
