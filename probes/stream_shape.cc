#include "probes/stream_shape.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace commtune::probes {

namespace {

// Bytes that are under way when messages are streamed, for how long they keep a link busy, how many times
// longer than a message needs to arrive at least, and the limits of their number.
constexpr double kStreamBytes = 1 << 20;
constexpr Seconds kStreamWindow{8e-3};
constexpr double kHidden = 2;
constexpr double kFewest = 3, kMost = 64;

// A stream's length beyond the messages that start together, in time and in windows of such messages. Ranks
// that share processors delay a stream by a millisecond or two, however long it is.
constexpr Seconds kLongStream{20e-3};
constexpr int kLeastWindows = 2, kMostWindows = 32;

}  // namespace

int streamed_at_once(Bytes size, Seconds each, Seconds latency) {
  const double by_bytes = kStreamBytes / static_cast<double>(std::max<std::uint64_t>(size.count, 1));
  const double by_time = kStreamWindow / each;
  const double hiding = std::ceil(kHidden * latency / each);
  return static_cast<int>(std::clamp(std::max(std::min(by_bytes, by_time), hiding), kFewest, kMost));
}

int streamed_in_all(int at_once, Seconds each) {
  const double fitting = kLongStream / each;
  return at_once +
         static_cast<int>(std::clamp<double>(fitting, kLeastWindows * at_once, kMostWindows * at_once));
}

}  // namespace commtune::probes
