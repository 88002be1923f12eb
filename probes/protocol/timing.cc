#include "probes/protocol/timing.h"

#include <algorithm>
#include <cassert>

namespace commtune::probes {

namespace {

double seconds(Nanoseconds time) { return std::chrono::duration<double>(time).count(); }

bool takes_part(const FollowerReport& report) { return report.head.started != Nanoseconds{0}; }

/// Of those that take part.
Nanoseconds last_start(std::span<const FollowerReport> reports) {
  Nanoseconds start = Nanoseconds::min();
  for (const FollowerReport& report : reports) {
    if (takes_part(report)) start = std::max(start, report.head.started);
  }
  return start;
}

}  // namespace

double alone_seconds(std::span<const FollowerReport> reports) {
  Nanoseconds end = Nanoseconds::min();
  for (const FollowerReport& report : reports) {
    if (!takes_part(report)) continue;
    for (const Nanoseconds one : report.ends) end = std::max(end, one);
  }
  return seconds(end - last_start(reports));
}

std::vector<double> in_a_row(std::span<const FollowerReport> reports) {
  std::vector<double> result;
  std::size_t operations = 0;
  for (const FollowerReport& report : reports) operations = std::max(operations, report.ends.size());
  Nanoseconds before = last_start(reports);
  for (std::size_t i = 0; i < operations; ++i) {
    Nanoseconds end = before;
    for (const FollowerReport& report : reports) {
      if (i < report.ends.size()) end = std::max(end, report.ends[i]);
    }
    result.push_back(seconds(end - before));
    before = end;
  }
  return result;
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
