#include "tuner/methods/d_credit.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "perfmodel/fit/curve_ops.h"
#include "tuner/messages.h"
#include "tuner/methods/byte_scheduler.h"

namespace commtune::tuner {

namespace {

/// Sizes of a block that are tried: ByteScheduler's and BytePS's defaults lie among them.
constexpr Bytes kBlocks[] = {1_MiB, 4_MiB, 16_MiB};

/// Moments at which gradients appear, in order.
std::vector<double> appearances(const Workload& work) {
  std::vector<double> moments;
  for (std::size_t layer = work.layers(); layer-- > 0;) {
    if (work.layer_bytes[layer] > 0) moments.push_back(work.ready[layer]);
  }
  return moments;
}

/// Windows of a plan whose messages start at these moments.
std::vector<Bytes> windows_of(const Planning& job, const RoadOption& option, const Plan& plan,
                              const Timeline& timeline, Bytes block) {
  const std::vector<double> moments = appearances(job.work);
  const StageCost& cost = option.cost.shared_channel ? option.cost.both : option.cost.reduce;
  const double per_byte = least_time_per_byte(cost.occupancy).value;
  const double latency = std::max(0.0, (cost.alone(block) - cost.occupancy(block)).count());
  const auto bytes_in = [&](double seconds) {
    const double bytes = per_byte > 0 ? seconds / per_byte : static_cast<double>(kUnlimited.count);
    return Bytes{static_cast<std::uint64_t>(std::clamp(bytes, 0.0, static_cast<double>(kUnlimited.count)))};
  };
  const Bytes forward = Bytes{(bytes_in(latency).count / block.count + 1) * block.count};
  std::vector<Bytes> windows;
  windows.reserve(plan.messages.size());
  for (const MessageSpan& span : timeline.messages) {
    const auto next = std::upper_bound(moments.begin(), moments.end(), span.reduce_start.count());
    windows.push_back(next == moments.end() ? forward : bytes_in(*next - span.reduce_start.count()));
  }
  return windows;
}

}  // namespace

Plan d_credit(const Planning& job, const RoadOption& option) {
  Simulator simulator(job.work);
  const FlatRoad road = among_neighbours(FlatRoad(option.cost));
  std::optional<Plan> best;
  Seconds fastest = kNoLimit;
  const auto keep_if_faster = [&](Plan&& plan) {
    const Seconds time = simulator.time(FlatPlan(plan, job.work), road, fastest);
    if (best && time >= fastest) return;
    best = std::move(plan);
    fastest = time;
  };
  for (const Bytes block : kBlocks) {
    if (fastest <= option.floor() * (1 + kIndifferent)) break;
    if (best && best->messages.size() == job.work.tensors.size()) break;  // no tensor is larger
    Plan plan = byte_scheduler(job, option, {block, kUnlimited});
    Timeline timeline;
    simulator.run(FlatPlan(plan, job.work), road, &timeline);
    plan.window = windows_of(job, option, plan, timeline, block);
    keep_if_faster(std::move(plan));
  }
  return *std::move(best);
}

}  // namespace commtune::tuner
