#include "probes/timing.h"

#include <algorithm>
#include <cassert>

namespace commtune::probes {

namespace {

double seconds(Nanoseconds time) { return std::chrono::duration<double>(time).count(); }

bool took_part(const Report& report) { return report.head.started != Nanoseconds{0} && !report.ends.empty(); }

double steady(std::vector<Nanoseconds> ends, int in_flight) {
  std::sort(ends.begin(), ends.end());
  const auto together = static_cast<std::size_t>(in_flight);
  assert(ends.size() > together);
  // At least the clock's own step: a machine that stalls may let all of them end at one moment.
  const Nanoseconds between = std::max(ends.back() - ends[together - 1], Nanoseconds{1});
  return seconds(between) / static_cast<double>(ends.size() - together);
}

}  // namespace

double alone_seconds(std::span<const Report> reports) {
  Nanoseconds start = Nanoseconds::min();
  Nanoseconds end = Nanoseconds::min();
  for (const Report& report : reports) {
    if (!took_part(report)) continue;
    start = std::max(start, report.head.started);
    end = std::max(end, report.ends.back());
  }
  return seconds(end - start);
}

double streamed_seconds(std::span<const Report> reports, int in_flight) {
  std::vector<Nanoseconds> last;
  for (const Report& report : reports) {
    if (!took_part(report)) continue;
    last.resize(report.ends.size(), Nanoseconds::min());
    for (std::size_t i = 0; i < last.size(); ++i) last[i] = std::max(last[i], report.ends[i]);
  }
  return steady(std::move(last), in_flight);
}

double arrival_seconds(std::span<const Report> ends, int in_flight) {
  double slowest = 0;
  for (const Report& report : ends) {
    if (!report.ends.empty()) slowest = std::max(slowest, steady(report.ends, in_flight));
  }
  return slowest;
}

std::vector<double> half_round_trips(const Report& source) {
  std::vector<double> result = durations(source);
  for (double& duration : result) duration /= 2;
  return result;
}

std::vector<double> durations(const Report& report) {
  std::vector<double> result;
  for (const Nanoseconds duration : report.ends) result.push_back(seconds(duration));
  return result;
}

}  // namespace commtune::probes
