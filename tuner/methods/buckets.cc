#include "tuner/methods/buckets.h"

#include <algorithm>
#include <cmath>

#include "tuner/messages.h"

namespace commtune::tuner {

Plan buckets(const Planning& job, const RoadOption& option, Bytes first_cap, Bytes cap) {
  std::vector<std::size_t> sizes;
  bool full = true;
  Bytes filled;
  for (auto tensor = job.work.tensors.rbegin(); tensor != job.work.tensors.rend(); ++tensor) {
    if (full) {
      sizes.push_back(0);
      filled = Bytes{0};
    }
    ++sizes.back();
    filled += tensor->bytes;
    full = filled >= (sizes.size() == 1 ? first_cap : cap);
  }
  Plan plan = job.empty_plan(option.road);
  plan.messages = fused_messages(job.profile, sizes);
  plan.priority = list_priorities(plan.messages.size());
  return plan;
}

Plan horovod_buffers(const Planning& job, const RoadOption& option) {
  // Horovod's defaults: HOROVOD_CYCLE_TIME, in seconds, and HOROVOD_FUSION_THRESHOLD.
  constexpr double kCycle = 1e-3;
  constexpr Bytes kThreshold = 128_MiB;
  std::vector<std::size_t> sizes;
  double tick = 0, free = 0;
  Bytes filled;
  for (auto tensor = job.work.tensors.rbegin(); tensor != job.work.tensors.rend(); ++tensor) {
    const double ready = job.work.ready[tensor->layer];
    // What is ready by the tick at which the open buffer leaves still joins it.
    if (sizes.empty() || ready > tick || filled + tensor->bytes > kThreshold) {
      if (!sizes.empty()) free = std::max(free, tick) + option.cost.both.alone(filled).count();
      tick = std::ceil(std::max(ready, free) / kCycle) * kCycle;
      sizes.push_back(0);
      filled = Bytes{0};
    }
    ++sizes.back();
    filled += tensor->bytes;
  }
  Plan plan = job.empty_plan(option.road);
  plan.messages = fused_messages(job.profile, sizes);
  plan.priority = list_priorities(plan.messages.size());
  return plan;
}

Plan ddp_buckets(const Planning& job, const RoadOption& option) {
  return buckets(job, option, 1_MiB, 25_MiB);
}

}  // namespace commtune::tuner
