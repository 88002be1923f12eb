#pragma once
// How the executor's algorithms cut what they send, by default: the formulas need to know it, since chunks
// that follow each other hide latencies and stages of one message from each other.

#include "perfmodel/units.h"

namespace commtune {

/// A segment is cut into so many chunks, none longer or (but for a whole segment) shorter than the limits.
inline constexpr int kCuts = 4;
inline constexpr Bytes kShortestChunk{15_KiB}, kLongestChunk{60_KiB};

}  // namespace commtune
