#pragma once
// How long what is urgent waits behind a stream of others, once the stream is long enough to matter.

#include <functional>
#include <optional>
#include <vector>

#include "perfmodel/base/units.h"

namespace commtune::probes {

/// Waits (seconds) of a most urgent message behind a stream of so many others.
struct HeadOfLineWaits {
  int ahead = 0;
  std::vector<double> waits;
};

/// One try of it.
struct HeadOfLineTrial {
  double wait = 0;  ///< seconds
  Seconds took{};   ///< all of it
};

/// Behind so many messages; nothing if the probe is to stop. May throw.
using TryHeadOfLine = std::function<std::optional<HeadOfLineTrial>(int ahead)>;

/// Messages in the stream. Fewer would not keep two ends busy while one of them waits; 256 of 256 KiB are 64
/// MiB, more than sockets hold on either end.
inline constexpr int kFewestAhead = 4, kMostAhead = 256;

/// Sockets and queues are full behind long streams alone, and how much they hold grows with the number of
/// connections: the stream is doubled from `fewest` messages on until what is urgent waits no longer than
/// before. Nothing if not even the first try was made; otherwise about as long as `allowed`, by what tries
/// take, and longer at most by one first try.
std::optional<HeadOfLineWaits> find_head_of_line(const TryHeadOfLine& measure, int fewest, Seconds allowed);

}  // namespace commtune::probes
