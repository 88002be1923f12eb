#pragma once
// Which fits explain their samples so badly that a user should know before trusting what rests on them.

#include <string>
#include <vector>

#include "perfmodel/cluster.h"
#include "perfmodel/cost/fit_source.h"

namespace commtune {

/// A median relative residual above 10 %, a 90th percentile above 30 % or an R² below 0.9. A fit of one size
/// has nothing to explain, as its shape is a formula's. Told from what every fit is stored with.
bool is_doubtful(const Fit& fit);

/// Not so doubtful that the curve is worth nothing: beyond one of the limits of the residuals, and no nearer
/// to its samples than one cost for all sizes would be (R² <= 0).
bool is_usable(const Fit& fit);

/// "median residual 13.0 %, p90 40.2 %, R² 0.912".
std::string to_string(const FitQuality& quality);

/// Those of the fits that are doubtful, that of the largest 90th percentile first.
std::vector<FitSource> doubtful_among(std::vector<FitSource> fits);

/// Of a link or a road, in words, worst first: "push-pull, 4 colocated servers, 4 workers, streamed: median
/// residual 13.0 %, p90 40.2 %, R² 0.912". Jitter, rates and interference have no fit.
std::vector<std::string> doubtful_fits(const Cluster& cluster);

}  // namespace commtune
