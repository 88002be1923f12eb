#pragma once
// Moments as the store keeps them: UTC, to the millisecond, written as ISO 8601 so that text order is time
// order.

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

namespace commtune {

using Timestamp = std::chrono::sys_time<std::chrono::milliseconds>;

/// Where the present comes from; a parameter so that a test can stop or move it.
using WallClock = std::function<Timestamp()>;

Timestamp system_now();

std::string to_iso8601(Timestamp time);  ///< "2026-11-21T02:26:56.123Z"

/// Reads what to_iso8601 writes; the fraction may be absent. Throws Error{kBadInput} naming the text.
Timestamp timestamp_from_iso8601(std::string_view text);

}  // namespace commtune
