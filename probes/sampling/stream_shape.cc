#include "probes/sampling/stream_shape.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace commtune::probes {

namespace {

constexpr double kStreamBytes = 1 << 20;  // most bytes under way together, see the header
// Longest time for which they keep a link busy. Where only bytes were limited, 64 push-pulls of 8 KiB to a
// host of 100 Mb/s queued for 0.1 s, and three repetitions took 0.9 s of a probe of 7 s.
constexpr Seconds kStreamWindow{16e-3};
// And the shortest. Push-pulls of 4 KiB to one server for 7 hosts 771 us away, four of them under way,
// took 1.2 to 1.35 ms each, where the link needs 0.71: what a message waits for besides its latency is hidden
// as well.
constexpr double kHiddenTimes = 2, kHiddenLatencies = 4;
constexpr double kFewest = 3;         // messages under way together, see the header
constexpr double kHidesLittle = 1.5;  // times of a message alone in which as many as are under way pass
constexpr int kDeeper = 4;
// Times as many as were under way that a stream has to be worth to be measured again. Three push-pulls of
// 4 KiB to one server took 1.8 ms each where the link needs 1 (7 hosts, one of which is slow): they were so
// few because one had been thought to take 4.
constexpr int kWorthAgain = 2;
// A server in turn that had one message of 64 KiB at a time waited for the next one's first chunk in every
// tenth of the time, and 6 % of that of 512 KiB (7 hosts, 574 Mb/s).
constexpr int kOfEachServer = 2;

// Length of the longer stream beyond its first `at_once` messages, in time and in multiples of those. Ranks
// that share processors delay a stream by one or two milliseconds, however long it is, so it lasts ten times
// as long. With fewer multiples the two streams could not be told apart; the most of them, and
// of messages, keep a stream within kMostEnds (moments.h).
constexpr Seconds kLongStream{20e-3};
constexpr int kLeastWindows = 2, kMostWindows = 32, kMostFurther = 2048;
// Fifty times kLongStream: what commands cost, and a guess that is off by some factor, shorten none. A
// library's all-reduce of 9 ms beside links of 15 us would last 12 s, longer than ranks wait for each other.
constexpr Seconds kLongestStream{1};

}  // namespace

int streamed_at_once(Bytes size, Seconds each, Seconds latency, const StreamLimits& limits) {
  const double by_bytes = kStreamBytes / static_cast<double>(std::max<std::uint64_t>(size.count, 1));
  const double by_time = kStreamWindow / each;
  const double hiding = std::ceil(kHiddenTimes + kHiddenLatencies * (latency / each));
  const double small = limits.small, most = limits.most;
  const double wanted = std::clamp(std::max(std::min({by_bytes, by_time, small}), hiding), kFewest, most);
  return std::max(static_cast<int>(wanted), kOfEachServer * limits.servers);
}

std::optional<int> streamed_deeper(Bytes size, int at_once, Seconds each, Seconds latency,
                                   const StreamLimits& limits) {
  const bool hidden = at_once * each >= kHidesLittle * (latency + each);
  if (!hidden && kDeeper * at_once <= limits.most) return kDeeper * at_once;
  const int wanted = streamed_at_once(size, each, latency, limits);
  return wanted >= kWorthAgain * at_once ? std::optional(wanted) : std::nullopt;
}

int streamed_in_all(int at_once, Seconds each) {
  const double fitting = kLongStream / each;
  const int most = std::min(kMostWindows * at_once, kMostFurther);
  return at_once + static_cast<int>(std::clamp<double>(fitting, kLeastWindows * at_once, most));
}

int streamed_at_most(int wanted, int at_once, Seconds seen) {
  return std::min(wanted, std::max((1 + kLeastWindows) * at_once, row_at_most(wanted, seen)));
}

int row_at_most(int wanted, Seconds seen) {
  return std::max(1, static_cast<int>(std::min<double>(kLongestStream / seen, wanted)));
}

}  // namespace commtune::probes
