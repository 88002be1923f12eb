#pragma once
// How many messages a stream consists of. Pure functions.

#include <optional>

#include "perfmodel/base/units.h"

namespace commtune::probes {

/// What bounds the number of messages that are streamed together.
struct StreamLimits {
  int servers = 0;  ///< that take whole messages in turn: each of them has two, so as never to wait for one
  int small = 64;   ///< of small messages, unless only more of them hide the latency
  int most = 64;    ///< whatever they have to hide
};
/// Of an operation. A plan may have hundreds of small messages under way, but they come one by one, as
/// gradients do. Where ranks share processors those that start together share system calls and turns, more of
/// them than of a plan's.
inline constexpr StreamLimits kStreamedOperations{0, 16, 256};

/// Number of messages that are under way together when messages of this size are streamed.
///
/// Together they carry at most 1 MiB and keep the link busy for at most 16 ms: more of them would only queue,
/// and on a slow link they would use up the probe's budget. However large they are, there are enough to keep
/// the link busy for four times the latency, so that the latency of one, and what else it waits for, is
/// hidden behind the others.
///
/// each     seconds for one message in steady state
/// latency  seconds for an empty message alone
/// returns  3 to `most`, or twice as many as there are servers in turn. Two messages would be too few: the
///          rounds of each wait for those of the other, and neither hides the other's latency.
int streamed_at_once(Bytes size, Seconds each, Seconds latency, const StreamLimits& limits = {});

/// Number of messages to try next where a stream of so many says little of what a message takes in steady
/// state: four times as many where it took little longer than one message's latency, and where each took so
/// much less than was thought that streamed_at_once() says at least twice as many, that. nullopt where it
/// says enough, or where no more are allowed.
std::optional<int> streamed_deeper(Bytes size, int at_once, Seconds each, Seconds latency,
                                   const StreamLimits& limits);

/// Number of messages in the longer of the two streams that make one repetition. The shorter one has
/// `at_once` messages, and the difference between the two is the steady state (timing.h). The longer stream
/// lasts some 20 ms, so that its start is a small part of it, within limits on the number of messages.
///
/// each  seconds for one message in steady state
int streamed_in_all(int at_once, Seconds each);

/// Number of messages in a longer stream that was to have `wanted`, when its first ones have been seen: the
/// guess before may have been too short by a factor of hundreds. It lasts a second at most, or as few
/// messages as any has.
///
/// seen  seconds for one message, with what a command costs
int streamed_at_most(int wanted, int at_once, Seconds seen);

/// The same of operations that follow each other: at least one.
int row_at_most(int wanted, Seconds seen);

}  // namespace commtune::probes
