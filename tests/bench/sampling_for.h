#pragma once
// What it gains a model's plan that the sampling plan refines what this plan needs: `sampling --for MODEL`.

#include <vector>

#include "perfmodel/profile.h"
#include "tests/bench/drawn_probe.h"

namespace commtune::bench {

/// Prints how well the model's plan is predicted and chosen on each cluster where all roads count alike,
/// where they count by what the shipped models need, and by what this model needs: each with two seeds of the
/// noise, whose difference (A/A) says what no difference means. Beside it the errors of all roads.
///
/// each  a line for each cluster as well
void compare_for(const std::vector<DrawnCluster>& clusters, const SamplingCase& how, const Profile& profile,
                 std::uint64_t seed, bool each);

}  // namespace commtune::bench
