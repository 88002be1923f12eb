#include "tuner/methods/dear.h"

#include <optional>

#include "tuner/messages.h"
#include "tuner/methods/buckets.h"

namespace commtune::tuner {

Plan dear(const Planning& job, const RoadOption& option, Bytes buffer) {
  Plan plan = buckets(job, option, buffer, buffer);
  plan.barrier = Barrier::kPerLayer;
  plan.credit = kUnlimited;
  if (!option.cost.may_part) return plan;
  const auto groups = static_cast<std::uint32_t>(plan.messages.size());
  for (std::uint32_t group = 0; group < groups; ++group) plan.sequence.push_back({group, Stage::kReduce});
  for (std::uint32_t group = groups; group-- > 0;) plan.sequence.push_back({group, Stage::kDistribute});
  return plan;
}

Plan tuned_dear(const Planning& job, const RoadOption& option) {
  Simulator simulator(job.work);
  const FlatRoad road(option.cost);
  std::optional<Plan> best;
  Seconds fastest = kNoLimit;
  for (Bytes buffer = 1_MiB; buffer <= 256_MiB; buffer = Bytes{buffer.count * 2}) {
    Plan plan = dear(job, option, buffer);
    const bool in_one = plan.messages.size() <= 1;
    const Seconds time = simulator.time(FlatPlan(plan, job.work), road, fastest);
    if (!best || time < fastest) {
      best = std::move(plan);
      fastest = time;
    }
    if (in_one) break;  // and so with any larger buffer
  }
  return *best;
}

}  // namespace commtune::tuner
