#pragma once
// What no plan goes below as long as the costs are right: MODEL.md section 3.4.

#include "perfmodel/simulate.h"
#include "perfmodel/stage_cost.h"

namespace commtune {

/// The least time of an iteration on this road under these costs, whatever a lossless plan fuses, cuts,
/// reorders, decouples or overlaps. It is as true as the costs are: it knows neither other roads nor what the
/// fits got wrong. The largest of these bounds, each of which holds for every plan:
///
/// 1. Compute: f + b + u.
/// 2. For any set A of gradients T >= min_A r + a + b * sum_A m + min_A q. The maximum over A is what
/// Jackson's
///    preemptive one-machine schedule yields (1955; Carlier 1982) over layers as jobs (head r, body b*m, tail
///    q), with b the least time per byte that the road's channel is kept and a the least latency of a
///    message. Where the two stages have channels of their own each is bounded in turn, the other's least
///    latency moved into the tail or the head.
/// 3. Start-ups. Where a message passes in one turn, number a channel's messages as they are served. The
/// first
///    i of them carry x_i bytes, all of which existed when the i-th was served, so that was no earlier than
///    the moment when x_i bytes exist; and all that the i-th and later ones carry is wanted after the i-th is
///    back, so that was no later than T - q for the largest q among the M - x_(i-1) bytes of least tail
///    (batched_bound.h).
/// 4. Start-ups around one moment, at which some layer's gradients appear: messages before it cannot have
///    carried that layer's, so that the most urgent bytes are still to come (urgency_bound in
///    batched_bound.h).
///    Where messages take turns 3 and 4 do not hold, nor does 2 with more of a message's latency than that of
///    its last turn. There the messages whose lowest layer is one of the first k pass within the k-th's
///    times, and few of them can be large (overtaking.h); and none takes less than it takes alone.
/// 5. Compute slows by kappa while bytes move: T >= f + b + u + occupied * kappa / (1 + kappa).
///
/// Traffic that slows while compute runs is bounded on its own clock (Workload). Some tens of microseconds.
///
/// Jitter. Take the moments at which the sum of the layer that is ready last and wanted first is complete.
/// What a worker computes from one to the next takes a time that deviates from the mean by itself. If nothing
/// is computed before that layer, this is all of f + b + u, and the last worker ends the span: 1 and 5 hold
/// with E[max of the deviations] on top (of those workers whose hosts are the slowest, as others may be ahead
/// all the same). 2 to 4 do not. There the channel is what everybody waits for, and a late worker makes
/// nobody later as long as others' messages keep the channel busy. They hold as they are for the mean of the
/// iterations: of a plan whose order is fixed ahead T is a maximum of sums of times, so that its mean is no
/// less than T at the mean times (Jensen's inequality). Where the order follows from who is late (kPriority)
/// the same is shown for 2, and assumed for 3 and 4.
struct LowerBounds {
  Seconds expected{};  ///< no plan's mean iteration is shorter
  Seconds
      simulated{};  ///< the Simulator says no less of any plan: it adds all of the lateness to each of them
};
LowerBounds lower_bounds(const Workload& work, const RoadCost& cost);

/// LowerBounds::expected.
Seconds lower_bound(const Workload& work, const RoadCost& cost);

/// Length of Jackson's preemptive schedule: jobs with heads, bodies and tails (seconds, equal lengths).
/// max over all schedules of max_i (C_i + tail_i) cannot be less. O(n) for jobs listed as layers are, with
/// falling heads and tails; O(n^2) at worst.
double jackson(const std::vector<double>& head, const std::vector<double>& body,
               const std::vector<double>& tail);

}  // namespace commtune
