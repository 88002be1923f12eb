#include "tuner/methods/ipart.h"

#include <algorithm>

#include "tuner/messages.h"
#include "tuner/methods/mg_wfbp.h"
#include "tuner/methods/two_phase.h"

namespace commtune::tuner {

Groups hidden_parts(const FusionJob& job, const FusionCost& cost, double until) {
  Groups parts;
  double now = 0;
  for (std::size_t first = 0; first < job.bytes.size();) {
    std::uint64_t bytes = job.bytes[first];
    std::size_t last = first + 1;
    const auto ends = [&](std::size_t tensor, std::uint64_t total) {
      return std::max(now, job.ready[tensor]) + cost.alone(Bytes{total}).count();
    };
    while (last < job.bytes.size() && ends(last, bytes + job.bytes[last]) <= until)
      bytes += job.bytes[last++];
    now = std::max(now, job.ready[last - 1]) + cost.occupancy(Bytes{bytes}).count();
    parts.push_back(last - first);
    first = last;
  }
  return parts;
}

Plan ipart(const Planning& job, const RoadOption& option) {
  const StageCost& push = option.cost.shared_channel ? option.cost.both : option.cost.reduce;
  const FusionCost cost{push.occupancy, option.cost.both.alone};
  const BlockSplit blocks(job, cost, hidden_parts(fusion_job(job), cost, job.work.total_backward));
  return best_two_phase_plan(job, option, blocks, kUnlimited);
}

}  // namespace commtune::tuner
