#pragma once
// How many messages make a stream. Pure functions.

#include "perfmodel/units.h"

namespace commtune::probes {

/// Messages under way at once when messages of this size are streamed: no more than 1 MiB and than the link
/// is busy with for 8 ms, since more would only queue, and on a slow link spend the budget; but enough that
/// it is busy for twice the time that the first one needs to arrive, however large they are.
///
/// each     time of one of them in steady state
/// latency  of an empty message alone
/// returns  3 to 64: of two, whose rounds wait for each other's, neither hides the other's latency, and a
///          plan may have hundreds of small ones under way
int streamed_at_once(Bytes size, Seconds each, Seconds latency);

/// Messages in all of a stream whose messages take so long each, `at_once` under way: as many as make its
/// start a small part of it, within limits.
///
/// A repetition is two streams, one of `at_once` messages and one of these: their difference is the steady
/// state (timing.h).
int streamed_in_all(int at_once, Seconds each);

}  // namespace commtune::probes
