#pragma once
// Computes durations, in seconds, from the moments that ranks report. Pure functions; all moments are on one
// clock.

#include <span>
#include <vector>

#include "probes/protocol/command.h"

namespace commtune::probes {

/// Duration of one operation, or of a stream of operations: from the last rank's start to the last rank's
/// end, so that waiting for a rank that starts late does not count as communication. Ranks that take no part
/// report no start and are left out. Ranks that only send report no end.
double alone_seconds(std::span<const FollowerReport> reports);

/// Duration of a one-way stream: from the sender's start to the receiver's last end. It does not begin at a
/// late receiver's start, because the sender does not wait for the receiver: bytes that cross the link before
/// that would not be counted, and the stream would seem faster than the link.
double one_way_seconds(const FollowerReport& source, const FollowerReport& destination);

/// Seconds for one message in steady state: by how much longer the longer of two streams takes, per message
/// that it has more. Both streams start and end alike, so latency and the opening of congestion windows
/// cancel out. So does the effect of receivers getting data in pieces of up to 64 KiB; it would not if the
/// ends of single messages within a stream were compared, because only the last message's end is never
/// delayed by a piece that also holds bytes of the next one.
///
/// shorter, longer  one_way_seconds() or alone_seconds() of the two streams
/// fewer, more      their numbers of messages; fewer < more
/// returns          If the longer stream is not clearly longer (on a machine that stalls it may even be
///                  shorter), the whole stream's time per message. That is too long, since it includes the
///                  latency, but it is positive.
double steady_seconds(double shorter, int fewer, double longer, int more);

/// Durations of operations of which each begins on a rank when the one before has ended there: from when the
/// one before had ended on every rank. That of the first is its alone_seconds(). On average they are what a
/// plan's messages take that are sent one by one, as the loops of nccl-tests and IMB-MPI1 time them: ranks
/// that are done may begin, and ranks that share processors get no fresh start before each.
std::vector<double> in_a_row(std::span<const FollowerReport> reports);

/// One-way seconds of each message: half the durations of its round trips.
std::vector<double> half_round_trips(const FollowerReport& source);

/// The report's durations, in seconds.
std::vector<double> durations(const FollowerReport& report);

}  // namespace commtune::probes
