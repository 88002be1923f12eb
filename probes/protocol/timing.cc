#include "probes/protocol/timing.h"

#include <algorithm>
#include <cassert>

namespace commtune::probes {

namespace {

double seconds(Nanoseconds time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

double alone_seconds(std::span<const FollowerReport> reports) {
  Nanoseconds start = Nanoseconds::min();
  Nanoseconds end = Nanoseconds::min();
  for (const FollowerReport& report : reports) {
    if (report.head.started == Nanoseconds{0}) continue;
    start = std::max(start, report.head.started);
    for (const Nanoseconds one : report.ends) end = std::max(end, one);
  }
  return seconds(end - start);
}

double one_way_seconds(const FollowerReport& source, const FollowerReport& destination) {
  Nanoseconds end = source.head.started;
  for (const Nanoseconds one : destination.ends) end = std::max(end, one);
  return seconds(end - source.head.started);
}

double steady_seconds(double shorter, int fewer, double longer, int more) {
  assert(fewer < more);
  // Ratio. Repetitions of the same stream differ by about this part, so a smaller difference says nothing: it
  // once made a time of nothing, exactly known, of streams of 4 B.
  constexpr double kLeastGrowth = 0.03;
  if (longer - shorter < kLeastGrowth * longer) return std::max(longer, shorter) / more;
  return (longer - shorter) / (more - fewer);
}

std::vector<double> half_round_trips(const FollowerReport& source) {
  std::vector<double> result = durations(source);
  for (double& duration : result) duration /= 2;
  return result;
}

std::vector<double> durations(const FollowerReport& report) {
  std::vector<double> result;
  for (const Nanoseconds duration : report.ends) result.push_back(seconds(duration));
  return result;
}

}  // namespace commtune::probes
