#include "tuner/methods/asc_wfbp.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "perfmodel/cost/stage_cost.h"
#include "perfmodel/fit/curve_ops.h"
#include "tuner/messages.h"
#include "tuner/methods/mg_wfbp.h"

namespace commtune::tuner {

namespace {

constexpr int kMostAtOnce = 8;

/// Windows with which a message starts while fewer than `at_once` are under way: what the ones before it, but
/// for the last of so many, may have left is all of their bytes.
std::vector<Bytes> windows_of(const std::vector<Message>& messages, int at_once) {
  std::vector<Bytes> windows;
  windows.reserve(messages.size());
  Bytes behind;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    windows.push_back(behind);
    behind += message_bytes(messages[i]);
    const auto first = static_cast<std::ptrdiff_t>(i) - at_once + 2;
    if (first > 0) behind = behind - message_bytes(messages[static_cast<std::size_t>(first) - 1]);
  }
  return windows;
}

/// With its start-up shared by so many.
FusionCost shared(const RoadOption& option, int at_once) {
  const Curve occupancy = until_sent(option.cost), alone = option.cost.both.alone;
  if (at_once == 1) return {occupancy, alone};
  const Curve least = lower(option.cost.both.occupancy, alone);
  return {upper(recalibrated(occupancy, 1.0 / at_once, 1), least), alone};
}

}  // namespace

Plan asc_wfbp(const Planning& job, const RoadOption& option) {
  Simulator simulator(job.work);
  const FlatRoad road(option.cost);
  std::optional<Plan> best;
  Seconds fastest = kNoLimit;
  for (int at_once = 1; at_once <= kMostAtOnce; at_once *= 2) {
    if (best && fastest <= option.floor() * (1 + kIndifferent)) break;
    Plan plan = job.empty_plan(option.road);
    plan.messages = fused_messages(job.profile, exact_fusion(fusion_job(job), shared(option, at_once)));
    plan.priority = list_priorities(plan.messages.size());
    if (at_once > 1) plan.window = windows_of(plan.messages, at_once);
    const Seconds time = simulator.time(FlatPlan(plan, job.work), road, fastest);
    if (best && time >= fastest) break;  // with more of them at once each has less of the channel
    best = std::move(plan);
    fastest = time;
  }
  return *std::move(best);
}

}  // namespace commtune::tuner
