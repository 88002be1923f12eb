#pragma once
// Lower bounds: no plan is faster as long as the costs are right. MODEL.md section 3.4.

#include "perfmodel/cost/road_cost.h"
#include "perfmodel/simulate/simulate.h"

namespace commtune {

/// Bounds of an iteration on one road under these costs, whatever a lossless plan fuses, cuts, reorders,
/// decouples or overlaps. They are as true as the costs are: they know neither other roads nor errors of the
/// fits. Takes some tens of microseconds.
///
/// The result is the largest of the following bounds, each of which holds for every plan. Notation as in
/// MODEL.md section 3.1: f, b, u are the times of all forward, backward and update work; r (head) is when a
/// gradient exists; q (tail) is the compute that waits for it; M is all bytes.
///
/// 1. Compute: T >= f + b + u.
/// 2. Bytes: for any set A of gradients, T >= min_A r + a + beta * sum_A m + min_A q, where beta is the least
///    time for which a byte keeps the channel and a is the least latency of a message. The maximum over A is
///    the length of Jackson's preemptive one-machine schedule (1955; Carlier 1982), with layers as jobs: head
///    r, body beta * m, tail q. Where each stage has a channel of its own, each channel is bounded in turn,
///    and the other's least latency is added to the heads or tails.
/// 3. Start-ups, where a message passes in one round. Number a channel's messages as they are served. The
///    first i of them carry x_i bytes. All of these existed when the i-th was served, so that was no earlier
///    than the moment at which x_i bytes exist. Everything that the i-th and later messages carry is wanted
///    after the i-th is back, so that was no later than T - q, with q the largest tail among the M - x_(i-1)
///    bytes of least tail (batched_bound.h).
/// 4. Start-ups around the moment at which some layer's gradients appear. Messages served before it cannot
///    have carried those gradients, so the most urgent bytes are still to be sent (urgency_bound in
///    batched_bound.h).
/// 5. Compute slows by kappa while bytes move: T >= f + b + u + occupied * kappa / (1 + kappa), where
///    `occupied` is for how long a channel is.
///
/// Where a message passes in several rounds, 3 and 4 do not hold, and 2 holds only with the latency of a
/// message's last round. Instead, the messages whose lowest layer is one of the first k pass within the times
/// of the k-th, and few of them can be large (preemptive_bound.h); and no message takes less than it takes
/// alone.
///
/// Pulls of their own (Plan::pulls) are covered where each stage has a channel of its own. On a shared one
/// they may be faster: the bounds there are of messages that come back as they were pushed.
///
/// Where compute slows traffic, the bound is computed on the traffic's clock (Workload).
///
/// Jitter. Take the moments at which the sum of one layer is complete: the layer whose gradient is ready last
/// and wanted first. From one such moment to the next, each worker's compute deviates from its mean
/// independently. If no layer below that one is computed, the span contains all of f + b + u and ends with
/// the slowest worker, so 1 and 5 hold with E[max of the deviations] added (over the workers on the slowest
/// hosts only, since others may be ahead all the same). For 2 to 4 nothing is added: there everybody waits
/// for the channel, and a late worker delays nobody as long as other messages keep the channel busy. They
/// bound the mean of the iterations as they are: if a plan's order is fixed ahead, T is a maximum of sums of
/// times, so its mean is at least T at the mean times (Jensen's inequality). If the order depends on who is
/// late (kPriority), the same is proved for 2 and assumed for 3 and 4.
struct LowerBounds {
  Seconds expected{};   ///< no plan's mean iteration is shorter
  Seconds simulated{};  ///< the Simulator predicts no less for any plan, as it adds all lateness to each
};
LowerBounds lower_bounds(const Workload& work, const RoadCost& cost);

/// LowerBounds::expected.
Seconds lower_bound(const Workload& work, const RoadCost& cost);

/// Length in seconds of Jackson's preemptive schedule of jobs on one machine: no schedule has a smaller
/// max_i (completion_i + tail_i).
///
/// head, body, tail  by job, in seconds, of equal lengths
/// cost              O(n) for jobs listed as layers are, with falling heads and tails; O(n^2) at worst
double jackson(const std::vector<double>& head, const std::vector<double>& body,
               const std::vector<double>& tail);

}  // namespace commtune
