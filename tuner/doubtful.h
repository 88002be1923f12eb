#pragma once
// Fits that explain their samples badly, seen from the plans that are ranked by them.

#include <vector>

#include "perfmodel/cluster.h"
#include "tuner/planning.h"
#include "tuner/tuner.h"

namespace commtune::tuner {

/// The doubtful ones of the fits that these entries' roads are priced by, worst first.
std::vector<DoubtfulFit> doubtful_fits_behind(const std::vector<Entry>& ranking, const Cluster& cluster,
                                              int workers);

/// Throws Error{kPoorFit}, naming the worst one, when the job's roads are priced by fits of which none
/// is_usable().
void require_usable_fit(const Planning& job, const Cluster& cluster);

}  // namespace commtune::tuner
