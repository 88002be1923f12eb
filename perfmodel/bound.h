#pragma once
// A proof of how good a plan can be: MODEL section 3, "Lower bound".

#include "perfmodel/simulate.h"
#include "perfmodel/stage_cost.h"

namespace commtune {

/// No lossless schedule on this road ends an iteration earlier, whatever it fuses, cuts, reorders, decouples
/// or overlaps: for any set A of gradients T >= min_A r + a + b * sum_A m + min_A q. The maximum over A is
/// what Jackson's preemptive one-machine schedule yields (1955; Carlier 1982) over layers as jobs (head r,
/// body b*m, tail q), with b the least time per byte that the road's channel is kept and a the least latency
/// of a non-empty message. Where the two stages use channels of their own each is bounded in turn, the
/// other's least latency moved into the tail or the head, and the larger is kept. Compute that slows by kappa
/// while bytes move bounds T as well: T >= f + b + u + occupied * kappa / (1 + kappa). Straggling, which no
/// plan avoids, is included, as in Prediction::iteration. O(L log L).
Seconds lower_bound(const Workload& work, const RoadCost& cost);

/// Length of Jackson's preemptive schedule: jobs with heads, bodies and tails (seconds, equal lengths).
/// max over all schedules of max_i (C_i + tail_i) cannot be less. O(n log n).
double jackson(const std::vector<double>& head, const std::vector<double>& body,
               const std::vector<double>& tail);

}  // namespace commtune
