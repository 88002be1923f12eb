#include "tuner/trials.h"

#include <algorithm>
#include <cmath>

#include "perfmodel/base/normal.h"

namespace commtune::tuner {

namespace {

/// Where plans were late another plan may be so by anything from nothing to what they were. Half of it is the
/// road's where one was run; with more that agree, what they have in common.
RoadDelay delay_after(const std::vector<Seconds>& late) {
  if (late.empty()) return {};
  double sum = 0, squares = 0;
  for (const Seconds each : late) {
    sum += each.count();
    squares += each.count() * each.count();
  }
  constexpr double kOfUniform = 0.28867513459481287;  // standard deviation between 0 and 1: 1 / sqrt(12)
  const auto count = static_cast<double>(late.size());
  return {Seconds{sum / (count + 1)}, Seconds{kOfUniform * std::sqrt(squares / count)}};
}

}  // namespace

TransportRoad road_of(const Plan& plan) { return {plan.road, plan.transport}; }

const PlanTime* Trials::run_of(const std::string& digest) const {
  const auto run = std::ranges::find(runs, digest, &PlanTime::digest);
  return run == runs.end() ? nullptr : &*run;
}

Seconds expected_after_run(Seconds predicted, Seconds measured, Seconds half_width) {
  const double deviation = half_width.count() / kNormal95, off = std::abs((measured - predicted).count());
  if (off <= std::max(deviation, kIndifferent * predicted.count())) return predicted;
  const double share = 1 - (deviation / off) * (deviation / off);
  return Seconds{std::lerp(predicted.count(), measured.count(), share)};
}

RoadDelay delay_on(const TransportRoad& road, const std::vector<PlanTime>& runs) {
  std::vector<Seconds> own, alike;
  for (const PlanTime& run : runs) {
    if (road_of(run.plan) == road) own.push_back(run.late);
    if (architecture_of(run.plan.road) == architecture_of(road.road)) alike.push_back(run.late);
  }
  return delay_after(own.empty() ? alike : own);
}

}  // namespace commtune::tuner
