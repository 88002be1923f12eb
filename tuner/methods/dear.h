#pragma once
// DeAR (Zhang et al., 2023): the all-reduce taken apart, reduce-scatters while the backward pass runs,
// all-gathers while the next forward pass does.

#include "tuner/planning.h"

namespace commtune::tuner {

/// Fused groups of about `buffer` bytes; reduced first come first served, distributed in forward order, a
/// barrier per layer. Needs an all-reduce road with two stages; on any other the same groups go as whole
/// operations.
Plan dear(const Planning& job, const RoadOption& option, Bytes buffer);

/// With the buffer chosen by simulation, as DeAR's Bayesian tuner finds it by trying (its default is 25 MB).
Plan tuned_dear(const Planning& job, const RoadOption& option);

}  // namespace commtune::tuner
