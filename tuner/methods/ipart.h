#pragma once
// After iPart (Wang et al., IEEE TPDS 32(9), 2021): parts of unequal sizes, chosen greedily for each
// direction.

#include <vector>

#include "tuner/planning.h"
#include "tuner/search/fusion.h"

namespace commtune::tuner {

/// At hand was the abstract: communication and computation are partitioned in various sizes, gradients pushed
/// under the backward pass and parameters pulled under the forward pass, as an optimisation problem that is
/// solved greedily; up to 94 % over the default servers and 52 % over layer by layer on 72 nodes.
///
/// Taken from it: unequal parts, a greedy choice, the two directions.
/// Reconstructed: from the last layer on, layers are added to a part as long as its push still ends under the
/// backward work that follows; a layer that is larger than its cover is cut. What is left when the backward
/// pass ends goes in forward order by the mirror of that rule: a part is as large as is back under the
/// forward work before it, one layer at least. Where there is no such cover, the least size of a part is
/// chosen by simulation. Pulls are cut on their own by the same mirrored rule, over all layers, and asked for
/// in forward order, each once all of it has been pushed. The same parts for both directions, each answered
/// as soon as it is summed, are a choice too: the only one where servers cannot send back otherwise than they
/// were pushed to (may_pull_apart), and where pushes and pulls share a channel, on which no bound covers
/// pulls of their own.
Plan ipart(const Planning& job, const RoadOption& option);

/// The order of steps of a plan with pulls in forward order: pushes as they are listed, each pull behind the
/// last push that it needs and the pull before it.
std::vector<Step> pulls_behind_pushes(const Plan& plan);

/// The parts of the backward phase: sizes of groups of tensors.
Groups hidden_parts(const FusionJob& job, const FusionCost& cost, double until);

}  // namespace commtune::tuner
