#include "tuner/methods/byte_scheduler.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "tuner/messages.h"

namespace commtune::tuner {

namespace {

/// Most pieces that a setting of the grid may cut a model into: finer ones only add start-ups.
constexpr std::uint64_t kMostPieces = 4096;

Plan by_priority(const Planning& job, const RoadOption& option, const ByteSchedulerOptions& settings) {
  Plan plan = job.empty_plan(option.road);
  plan.messages =
      cut_messages(tensor_messages(job.profile), settings.partition, element_size(job.profile.type));
  plan.priority = layer_priorities(plan.messages, job.work.tensors);
  plan.order = Order::kPriority;
  plan.credit = settings.credit;
  plan.barrier = settings.barrier;
  return plan;
}

Bytes largest_tensor(const Workload& work) {
  Bytes largest;
  for (const TensorRef& tensor : work.tensors) largest = std::max(largest, tensor.bytes);
  return largest;
}

}  // namespace

Plan frozen(const Planning& job, const RoadOption& option, Plan plan) {
  Timeline timeline;
  simulate(job.work, plan, option.cost, &timeline);
  std::vector<std::size_t> started(plan.messages.size());
  std::iota(started.begin(), started.end(), std::size_t{0});
  std::stable_sort(started.begin(), started.end(), [&](std::size_t a, std::size_t b) {
    return timeline.messages[a].reduce_start < timeline.messages[b].reduce_start;
  });
  std::vector<Message> messages;
  messages.reserve(started.size());
  for (const std::size_t message : started) messages.push_back(std::move(plan.messages[message]));
  plan.messages = std::move(messages);
  plan.priority = list_priorities(plan.messages.size());
  plan.order = Order::kList;
  return plan;
}

Plan byte_scheduler(const Planning& job, const RoadOption& option, const ByteSchedulerOptions& settings) {
  Plan plan = by_priority(job, option, settings);
  return needs_one_order(option.road) ? frozen(job, option, std::move(plan)) : plan;
}

Plan tuned_byte_scheduler(const Planning& job, const RoadOption& option) {
  Simulator simulator(job.work);
  const FlatRoad road(option.cost);
  std::optional<ByteSchedulerOptions> best;
  Seconds fastest = kNoLimit;
  const Bytes largest = largest_tensor(job.work);
  FlatPlan plan;
  bool cuts = true;  // with a larger partition another plan
  // Smaller pieces, and fewer of them under way, are kinder to hosts than any model says.
  const auto wanted = [&] { return fastest * (1 - kIndifferent); };
  const auto may_improve = [&] { return wanted() > option.floor(); };
  for (Bytes partition = 256_KiB; partition <= 64_MiB && may_improve();
       partition = Bytes{partition.count * 4}) {
    if (job.work.total_bytes / partition.count > kMostPieces) continue;
    const bool known = !cuts && plan.messages() > 0;
    if (!known) plan = FlatPlan(by_priority(job, option, {partition, Bytes{0}}), job.work);
    cuts = largest > partition;
    for (const std::uint64_t in_flight : {1, 4}) {  // as ByteScheduler counts them: the next one included
      if (known && in_flight == 1) continue;        // of whole tensors one at a time, whatever the partition
      if (!may_improve()) break;
      const ByteSchedulerOptions settings{partition, Bytes{partition.count * (in_flight - 1)}};
      plan.credit = settings.credit.count;
      const Seconds time = simulator.time(plan, road, wanted());
      if (time >= wanted()) continue;
      best = settings;
      fastest = time;
    }
  }
  if (!best) best = ByteSchedulerOptions{Bytes{job.work.total_bytes / kMostPieces}, Bytes{0}};
  return byte_scheduler(job, option, *best);
}

}  // namespace commtune::tuner
