#pragma once
// From samples of NCCL's tunings to fits that can be compared with each other. Pure.

#include <span>
#include <vector>

#include "perfmodel/cluster.h"
#include "perfmodel/fit/fit.h"
#include "probes/analysis/fit_operations.h"

namespace commtune::probes {

/// Of samples that span what is sent (enough_sizes.h); the others are left out. Their deviations are what
/// sizes left out, and repetitions, tell of each and of all together: a search over many tunings finds the
/// one whose fit errs most in its favour.
std::vector<NcclFit> fit_nccl(std::span<const OperationSamples> tunings, const FitOptions& options);

}  // namespace commtune::probes
