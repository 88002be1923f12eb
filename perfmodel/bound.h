#pragma once
// A proof of how good a plan can be: MODEL section 3, "Lower bound".

#include "perfmodel/simulate.h"
#include "perfmodel/stage_cost.h"

namespace commtune {

/// No lossless schedule on this road ends an iteration earlier, whatever it fuses, cuts, reorders or
/// overlaps. Jackson's preemptive one-machine schedule (1955; Carlier 1982) over gradients as jobs (head r,
/// body b*m, tail q), with the least set-up of a non-empty message, each stage bounded in turn, the larger
/// kept. O(L log L).
Seconds lower_bound(const Workload& work, const RoadCost& cost);

/// Length of Jackson's preemptive schedule: jobs with heads, bodies and tails (seconds, equal lengths).
/// max over all schedules of max_i (C_i + tail_i) cannot be less. O(n log n).
double jackson(const std::vector<double>& head, const std::vector<double>& body,
               const std::vector<double>& tail);

}  // namespace commtune
