#pragma once
// The best messages where the more urgent one overtakes (parameter servers), and what they rule out.

#include <vector>

#include "perfmodel/cost/road_cost.h"
#include "perfmodel/simulate/workload.h"

namespace commtune {

/// A channel that serves the most urgent message first and goes on with the others afterwards.
struct PreemptiveChannel {
  double overhead = 0, beta = 0;  ///< a message keeps it for overhead + beta * m
  double latency = 0;             ///< of what comes before and after it
};

/// The channel of a road over servers whose stages share one, as a line below its costs.
///
/// waits  how often a message waits for what sockets hold (RoadCost::head_of_line)
PreemptiveChannel preemptive_channel(const RoadCost& cost, int waits);

/// Number the messages of a plan by their lowest layer, which says when a message may start and when it is
/// wanted back; these times lie inside those of the next one. So the first k, which carry all bytes below the
/// lowest layer of the k-th's successor, pass the channel inside the k-th's times, whatever else they carry.
/// The larger each is made, the later the next one's lowest layer: making them as large as a time T allows
/// finds out whether T can be reached, and how (nested intervals on one preemptive machine).
///
/// returns  the largest T that this rules out, to 0.05 %; at least `known`, which is positive
double preemptive_bound(const Workload& work, const PreemptiveChannel& channel, double known);

/// Where the messages end that reach the least T, in bytes from the first layer's on; the last at all of
/// them.
std::vector<double> preemptive_messages(const Workload& work, const PreemptiveChannel& channel, double known);

}  // namespace commtune
