#include "tuner/methods/byte_scheduler.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include "tuner/messages.h"
#include "tuner/methods/wfbp.h"
#include "tuner/server_keys.h"

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
  if (settings.servers == ServerChoice::kHash && takes_messages_whole(option.road))
    plan.server = byteps_servers(job.keys, plan.messages, servers_of(option.road));
  return plan;
}

Bytes largest_tensor(const Workload& work) {
  Bytes largest;
  for (const TensorRef& tensor : work.tensors) largest = std::max(largest, tensor.bytes);
  return largest;
}

}  // namespace

Plan frozen(const Planning& job, const RoadOption& option, Plan plan) {
  FlatPlan flat(plan, job.work);
  flat.overtakes = false;
  Simulator simulator(job.work);
  simulator.run(flat, option.cost);
  const std::span<const std::uint32_t> started = simulator.started();
  std::vector<Message> messages;
  messages.reserve(started.size());
  for (const std::uint32_t message : started) messages.push_back(std::move(plan.messages[message]));
  plan.messages = std::move(messages);
  if (!plan.server.empty()) {
    std::vector<std::uint32_t> server;
    server.reserve(started.size());
    for (const std::uint32_t message : started) server.push_back(plan.server[message]);
    plan.server = std::move(server);
  }
  plan.priority = list_priorities(plan.messages.size());
  plan.order = Order::kList;
  return plan;
}

Plan byte_scheduler(const Planning& job, const RoadOption& option, const ByteSchedulerOptions& settings) {
  Plan plan = by_priority(job, option, settings);
  return needs_one_order(option.road) ? frozen(job, option, std::move(plan)) : plan;
}

namespace {

/// A setting by its place on a logarithmic grid: partition = 2^(step / kSteps) * kFinest, and a credit of so
/// many pieces beside the next one.
struct Setting {
  int step = 0;
  std::uint64_t behind = 0;
  bool operator==(const Setting&) const = default;
};

constexpr Bytes kFinest = 256_KiB;
constexpr int kSteps = 8;  // for a factor of 2
constexpr std::uint64_t kMostBehind = 31;

/// Where each message takes many rounds, settings are compared by simulating few of them, each for several;
/// so many of the best are then simulated as they are.
constexpr int kRoughRounds = 4;
constexpr std::size_t kFinalists = 2;

Bytes partition_of(int step) {
  return Bytes{static_cast<std::uint64_t>(
      std::llround(static_cast<double>(kFinest.count) * std::exp2(static_cast<double>(step) / kSteps)))};
}

/// Simulates settings, each once, and keeps the best. On all-to-all roads the best has hardly ever more than
/// one piece behind the next one: that hides its start-up. Fewer pieces under way are kinder to hosts than
/// any model says; so are smaller ones to servers, and larger ones where all ranks need each other for each
/// piece. Others must beat them by what can be told apart.
class SettingSearch {
 public:
  SettingSearch(const Planning& job, const RoadOption& option)
      : job_(job),
        option_(option),
        road_(option.cost),
        rough_road_(with_rounds(road_, kRoughRounds)),
        prefers_large_(needs_one_order(option.road)),
        few_behind_(prefers_large_ ? 1 : 3),
        simulator_(job.work),
        fastest_(option.to_beat) {
    const Bytes largest = largest_tensor(job.work);
    while (job_.work.total_bytes / partition_of(first_).count > kMostPieces) ++first_;
    for (last_ = first_; partition_of(last_) < largest;) ++last_;
  }

  /// A coarse grid, then around the best with ever smaller steps until none is better.
  void run() {
    for (int step = 0; step < last_ - first_ + 2 * kSteps; step += 2 * kSteps) {
      const int at = prefers_large_ ? std::max(last_ - step, first_) : std::min(first_ + step, last_);
      for (const std::uint64_t behind : {std::uint64_t{0}, few_behind_}) try_setting({at, behind});
    }
    for (int stride = kSteps / 2; stride >= 1; stride /= 2) refine(stride);
    if (is_rough()) decide_among_last();
  }

  ByteSchedulerOptions best() const {
    const Setting setting = best_.value_or(Setting{first_, 0});
    const Bytes partition = partition_of(setting.step);
    return {partition, Bytes{partition.count * setting.behind}};
  }

 private:
  /// Larger and smaller pieces by this stride, more or fewer of them, and both at the same bytes, as long as
  /// one of these is better.
  void refine(int stride) {
    for (std::optional<Setting> centre; best_ && centre != best_ && may_improve();) {
      centre = best_;
      const auto [step, behind] = *centre;
      for (const int next : {step - stride, step + stride}) try_setting({next, behind});
      for (const std::uint64_t next : {behind / 2, behind + 1, 2 * behind + 1}) try_setting({step, next});
      try_setting({step - stride, behind + 1});
      if (behind > 0) try_setting({step + stride, behind - 1});
    }
  }

  bool is_rough() const {
    return rough_road_.most_rounds < std::min(road_.most_rounds, option_.cost.rounds.both());
  }
  bool may_improve() const { return wanted() > option_.floor(); }
  Seconds wanted() const { return fastest_ * (1 - kMargin); }

  void try_setting(const Setting& setting) {
    if (setting.step < first_ || setting.step > last_ || setting.behind > kMostBehind || !may_improve())
      return;
    if (std::ranges::find(tried_, setting) != tried_.end()) return;
    tried_.push_back(setting);
    if (beats(setting, rough_road_)) bests_.push_back(setting);
  }

  /// Whether it wins over the best, which it becomes then.
  bool beats(const Setting& setting, const FlatRoad& road) {
    const Seconds time = simulator_.time(plan_with(setting), road, wanted());
    if (time >= wanted()) return false;
    best_ = setting;
    fastest_ = time;
    return true;
  }

  /// The best of the last ones that were, with all their rounds; the fastest by few of them first.
  void decide_among_last() {
    fastest_ = option_.to_beat;
    for (std::size_t i = 0; i < std::min(kFinalists, bests_.size()); ++i)
      beats(bests_[bests_.size() - 1 - i], road_);
  }

  const FlatPlan& plan_with(const Setting& setting) {
    const Bytes partition = partition_of(setting.step);
    if (cut_ != partition) cut(partition);
    cut_ = partition;
    plan_.credit = partition.count * setting.behind;
    return plan_;
  }

  /// plan_ becomes FlatPlan(by_priority(...)), but for its credit.
  void cut(Bytes partition) {
    const std::uint64_t element = element_size(job_.profile.type).count;
    const std::uint64_t most = std::max<std::uint64_t>(partition.count / element, 1) * element;
    const int servers = takes_messages_whole(option_.road) ? servers_of(option_.road) : 0;
    const std::vector<TensorRef>& tensors = job_.work.tensors;
    plan_.clear();
    plan_.order = Order::kPriority;
    plan_.overtakes = !needs_one_order(option_.road);
    plan_.barrier = Barrier::kPerLayer;
    for (std::size_t tensor = tensors.size(); tensor-- > 0;) {
      std::uint64_t piece = 0;
      for (std::uint64_t left = tensors[tensor].bytes.count; left > 0; ++piece) {
        const std::uint64_t bytes = std::min(left, most);
        plan_.add_message(bytes, tensors[tensor].layer, false);
        if (servers > 0)
          plan_.server.push_back(job_.keys.server(static_cast<TensorId>(tensor), piece, servers));
        left -= bytes;
      }
    }
    plan_.rank_by_layer();
  }

  /// What a setting must win over one that was tried before.
  static constexpr double kMargin = kIndifferent / 4;

  const Planning& job_;
  const RoadOption& option_;
  const FlatRoad road_, rough_road_;  ///< settings are compared on the second
  const bool prefers_large_;          ///< pieces
  const std::uint64_t few_behind_;    ///< of the coarse grid, beside none
  Simulator simulator_;
  int first_ = 0, last_ = 0;  ///< steps: no more than kMostPieces, and no tensor is cut
  FlatPlan plan_;
  Bytes cut_;
  std::vector<Setting> tried_;
  std::vector<Setting> bests_;  ///< each faster than those before it, by few rounds
  std::optional<Setting> best_;
  Seconds fastest_;
};

}  // namespace

Plan tuned_byte_scheduler(const Planning& job, const RoadOption& option) {
  SettingSearch search(job, option);
  search.run();
  return byte_scheduler(job, option, search.best());
}

Plan untuned_byte_scheduler(const Planning& job, const RoadOption& option) {
  return byte_scheduler(job, option, {kServerPartition, Bytes{3 * kServerPartition.count}});
}

}  // namespace commtune::tuner
