#include "tuner/methods/buckets.h"

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

Plan ddp_buckets(const Planning& job, const RoadOption& option) {
  return buckets(job, option, 1_MiB, 25_MiB);
}

}  // namespace commtune::tuner
