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
  std::optional<Plan> best;
  Seconds fastest{};
  for (Bytes buffer = 1_MiB; buffer <= 256_MiB; buffer = Bytes{buffer.count * 2}) {
    Plan plan = dear(job, option, buffer);
    const Seconds time = simulator.run(plan, option.cost).iteration;
    if (best && time >= fastest) continue;
    best = std::move(plan);
    fastest = time;
  }
  return *best;
}

}  // namespace commtune::tuner
