#pragma once
// From what ranks report to how long something took. Pure functions; moments are on one clock.

#include <span>
#include <vector>

#include "probes/command.h"

namespace commtune::probes {

/// One operation on one message: from the last rank's start to the last rank's end, so that ranks that came
/// late are not counted as communication. Ranks that took no part (no start) are left out.
double alone_seconds(std::span<const Report> reports);

/// Steady-state time of one message of many. A message has ended when it has ended on the last rank. The
/// first `in_flight` messages started together and share their way, so the time runs from the end of the last
/// of them to the end of all, and is divided by the number of messages in between. More messages than in
/// flight.
double streamed_seconds(std::span<const Report> reports, int in_flight);

/// Of messages that one rank received, or of both ends' if both received: the slower end's.
double arrival_seconds(std::span<const Report> ends, int in_flight);

/// One way, from the durations of round trips.
std::vector<double> half_round_trips(const Report& source);

std::vector<double> durations(const Report& report);

}  // namespace commtune::probes
