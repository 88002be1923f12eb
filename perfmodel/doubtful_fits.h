#pragma once
// Which fits explain their samples so badly that a user should know before trusting what rests on them.

#include <string>
#include <vector>

#include "perfmodel/cluster.h"

namespace commtune {

/// Each fit of a link or a road whose median relative residual is above 10 %, whose 90th percentile is above
/// 30 % or whose R² is below 0.9, worst first: "push-pull, 4 colocated servers, 4 workers, streamed: median
/// residual 13.0 %, p90 40.2 %, R² 0.912". Jitter, rates and interference have no fit.
std::vector<std::string> doubtful_fits(const Cluster& cluster);

}  // namespace commtune
