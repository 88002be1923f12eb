#pragma once
// From what ranks report to how long something took. Pure functions; moments are on one clock.

#include <span>
#include <vector>

#include "probes/command.h"

namespace commtune::probes {

/// One operation, or a stream of messages: from the last rank's start to the last rank's end, so that ranks
/// that came late are not counted as communication. Ranks that took no part (no start) are left out; those
/// that only send have no end.
double alone_seconds(std::span<const Report> reports);

/// A stream one way, from the sender's start to the receiver's last end. The sender waits for nobody: bytes
/// that went before a receiver came late have crossed the link all the same, and counted from its start the
/// stream would be faster than the link.
double one_way_seconds(const Report& source, const Report& destination);

/// Steady-state time of one message of many: by how much longer a stream of more messages takes, for each
/// message that it has more. Both streams start and end in the same way, so that latency, the opening of
/// windows and how receivers see data in pieces (of up to 64 KiB) all drop out, which they do not where the
/// ends of single messages are compared: the last one is not held up by a piece that has bytes of the next.
///
/// shorter, longer  one_way_seconds() or alone_seconds() of the two streams; fewer < more
/// returns          where the longer one is not clearly longer (a machine that stalls may even swap them),
/// what
///                  a message takes of the whole stream: too long, for its latency is in it, but no nonsense
double steady_seconds(double shorter, int fewer, double longer, int more);

/// One way, from the durations of round trips.
std::vector<double> half_round_trips(const Report& source);

std::vector<double> durations(const Report& report);

}  // namespace commtune::probes
