#include "tuner/methods/ipart.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "perfmodel/common_parts.h"
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

std::vector<Step> pulls_behind_pushes(const Plan& plan) {
  const CommonParts common = common_parts(plan);
  std::vector<Step> steps;
  steps.reserve(plan.messages.size() + plan.pulls.size());
  std::uint32_t pushed = 0;
  const auto push_until = [&](std::uint32_t end) {
    while (pushed < end) steps.push_back({pushed++, Stage::kReduce});
  };
  for (std::uint32_t pull = 0; pull < plan.pulls.size(); ++pull) {
    for (const std::uint32_t part : common.of_pull[pull]) push_until(common.parts[part].message + 1);
    steps.push_back({pull, Stage::kDistribute});
  }
  push_until(static_cast<std::uint32_t>(plan.messages.size()));
  return steps;
}

namespace {

/// Parts for each direction, and the fastest plan of them.
class PartsApart {
 public:
  /// known  time that another plan takes
  PartsApart(const Planning& job, const RoadOption& option, Seconds known)
      : job_(job),
        option_(option),
        pushes_(job, cost_of(option.cost.reduce),
                hidden_parts(fusion_job(job), cost_of(option.cost.reduce), job.work.total_backward)),
        pulls_(job, cost_of(option.cost.distribute), {}),
        simulator_(job.work),
        road_(option.cost),
        fastest_(known) {}

  /// Nothing where none is faster than what is known. The least sizes of pulls are tried first, with the
  /// least pushes; then those of pushes.
  std::optional<Plan> best() {
    std::uint64_t pull = pulls_.smallest(), best_pull = pull;
    for (int i = 0; i < kLeastSizes && !is_enough(); ++i, pull *= 2) {
      if (try_sizes(pushes_.smallest(), pull)) best_pull = pull;
    }
    std::uint64_t push = pushes_.smallest();
    for (int i = 1; i < kLeastSizes && !is_enough(); ++i) try_sizes(push *= 2, best_pull);
    return std::move(best_);
  }

 private:
  static FusionCost cost_of(const StageCost& stage) { return {stage.occupancy, stage.alone}; }

  bool is_enough() const { return fastest_ <= option_.floor() * (1 + kIndifferent); }

  /// Whether it is the fastest so far.
  bool try_sizes(std::uint64_t push, std::uint64_t pull) {
    Plan plan = job_.empty_plan(option_.road);
    plan.messages = pushes_.messages(push);
    plan.pulls = pulls_.messages(pull);
    if (best_ && plan.messages == best_->messages && plan.pulls == best_->pulls) return false;
    plan.priority = list_priorities(plan.messages.size());
    plan.barrier = Barrier::kPerLayer;
    plan.credit = kUnlimited;
    plan.sequence = pulls_behind_pushes(plan);
    const Seconds time = simulator_.time(FlatPlan(plan, job_.work), road_, fastest_);
    if (time >= fastest_) return false;
    best_ = std::move(plan);
    fastest_ = time;
    return true;
  }

  const Planning& job_;
  const RoadOption& option_;
  const BlockSplit pushes_, pulls_;
  Simulator simulator_;
  const FlatRoad road_;
  std::optional<Plan> best_;
  Seconds fastest_;
};

}  // namespace

namespace {

/// Each answer comes back as its push went.
Plan parts_together(const Planning& job, const RoadOption& option) {
  const StageCost& push = option.cost.shared_channel ? option.cost.both : option.cost.reduce;
  const FusionCost cost{push.occupancy, option.cost.both.alone};
  const BlockSplit blocks(job, cost, hidden_parts(fusion_job(job), cost, job.work.total_backward));
  return best_two_phase_plan(job, option, blocks, kUnlimited);
}

}  // namespace

Plan ipart(const Planning& job, const RoadOption& option) {
  Plan together = parts_together(job, option);
  const bool may = may_pull_apart(option.road) && !option.cost.shared_channel;
  if (!may || job.work.total_bytes == 0 || job.workers == 1) return together;
  const Seconds known = simulate(job.work, together, option.cost).iteration;
  std::optional<Plan> apart = PartsApart(job, option, known).best();
  return apart ? *std::move(apart) : together;
}

}  // namespace commtune::tuner
