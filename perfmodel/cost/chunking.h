#pragma once
// How the executor's algorithms cut what they send, by default: the formulas need to know it, since chunks
// that follow each other hide latencies and stages of one message from each other.

#include "perfmodel/base/units.h"

namespace commtune {

/// A segment is cut evenly, into so many chunks or fewer: what is no longer than the first limit is not cut.
/// Into more where they would be longer than the second.
inline constexpr int kCuts = 4;
inline constexpr Bytes kUncut{15_KiB}, kLongestChunk{60_KiB};
/// So the chunks of a segment that is just beyond the first limit are half of it, and on average this.
inline constexpr Bytes kShortChunk{kUncut.count * 3 / 4};

}  // namespace commtune
