#include "tuner/methods/byte_scheduler.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <utility>
#include <vector>

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
    plan.server = byteps_servers(job.keys, plan.messages, whole_message_servers(option.road));
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
  simulator.run(flat, among_neighbours(FlatRoad(option.cost)));
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

/// A setting by its place on a logarithmic grid that begins at the largest tensor: partition = largest /
/// 2^(cuts / kSteps), and a credit of largest * 2^(credit / kSteps) bytes. That is no multiple of the
/// partition: what hides a start-up is often some small tensors.
struct Setting {
  int cuts = 0;
  int credit = 0;
  bool operator==(const Setting&) const = default;
};

constexpr int kSteps = 16;                                     // for a factor of 2
constexpr int kNone = -12 * kSteps, kMostCredit = 3 * kSteps;  // that a credit may be; the most: no limit
constexpr int kLeastCredit = -4 * kSteps;                      // of the coarse grid, over the partition
constexpr Bytes kFinest = 256_KiB;

/// How closely settings are searched, in steps.
struct Closeness {
  int cuts, credits;   ///< of the coarse grid
  int whole_credits;   ///< of it, where tensors are whole: there what is best may lie far apart
  int most_credit;     ///< of it, over the partition
  std::size_t starts;  ///< how many of the coarse grid's best the search goes on around
  double stay;         ///< part of these that is left each time the steps are halved
  int last;            ///< step
};
constexpr Closeness kQuick{4 * kSteps, 4 * kSteps, 4 * kSteps, -kSteps, 1, 1, kSteps / 4},
    kThorough{2 * kSteps, 2 * kSteps, kSteps / 4, 2 * kSteps, 24, 0.7, 1};
/// How much slower than the best a setting of the coarse grid may be to be one of several starts.
constexpr double kStartBehind = 0.05;

struct Start {
  Setting setting;
  Seconds time{};
};

/// Simulates settings, each once: a coarse grid of both, then around its best with ever smaller steps, as
/// long as one of the neighbours is better. Fewer bytes under way are kinder to hosts than any model says; so
/// are smaller pieces to servers, and larger ones where all ranks need each other for each piece. These are
/// tried first, and others must beat them by what can be told apart. At last no limit is tried where all
/// ranks need each other: there few pieces that are under way wait for each other.
class SettingSearch {
 public:
  SettingSearch(const Planning& job, const RoadOption& option)
      : job_(job),
        option_(option),
        road_(among_neighbours(FlatRoad(option.cost))),
        coarse_road_(coarse(road_)),
        closeness_(job.thorough ? kThorough : kQuick),
        largest_(largest_tensor(job.work)),
        simulator_(job.work),
        fastest_(option.to_beat) {
    while (partition_of(most_cuts_ + 1) >= kFinest &&
           job_.work.total_bytes / partition_of(most_cuts_ + 1).count <= kMostPieces)
      ++most_cuts_;
  }

  ByteSchedulerOptions best() {
    scan();
    for (int step = kSteps; step >= closeness_.last; step /= 2) {
      for (Start& start : starts_) improve(start, step);
      std::ranges::stable_sort(starts_, {}, &Start::time);
      const double left = std::ceil(closeness_.stay * static_cast<double>(starts_.size()));
      starts_.resize(std::min(starts_.size(), static_cast<std::size_t>(left)));
    }
    if (starts_.empty()) starts_.push_back({{0, kNone}, option_.to_beat});
    Start& best = starts_.front();
    if (needs_one_order(option_.road)) {
      for (const int cuts : {best.setting.cuts, 0}) try_setting(best, {cuts, kMostCredit});
    }
    const Setting setting = best.setting;
    return {partition_of(setting.cuts), credit_of(setting.credit)};
  }

 private:
  Bytes partition_of(int cuts) const {
    return Bytes{static_cast<std::uint64_t>(
        std::ceil(static_cast<double>(largest_.count) * std::exp2(-static_cast<double>(cuts) / kSteps)))};
  }
  Bytes credit_of(int credit) const {
    if (credit <= kNone) return Bytes{};
    if (credit >= kMostCredit) return kUnlimited;
    return Bytes{static_cast<std::uint64_t>(
        std::llround(static_cast<double>(largest_.count) * std::exp2(static_cast<double>(credit) / kSteps)))};
  }

  /// The coarse grid: of each partition no credit, then parts of it. Its best become the starts.
  void scan() {
    std::vector<int> grid;
    for (int cuts = 0; cuts <= most_cuts_; cuts += closeness_.cuts) grid.push_back(cuts);
    if (2 * (most_cuts_ % closeness_.cuts) >= closeness_.cuts) grid.push_back(most_cuts_);
    if (!needs_one_order(option_.road)) std::ranges::reverse(grid);
    for (const int cuts : grid) scan_credits(cuts);
    std::ranges::stable_sort(starts_, {}, &Start::time);
    starts_.resize(std::min(starts_.size(), closeness_.starts));
    if (coarse_road_.rounds() >= road_.rounds()) return;
    tried_.clear();
    for (Start& start : starts_) start.time = time_of(start.setting, road_, kNoLimit);
    std::erase_if(starts_, [&](const Start& start) { return start.time >= wanted(option_.to_beat); });
  }

  void scan_credits(int cuts) {
    scan({cuts, kNone});
    const int step = cuts == 0 ? closeness_.whole_credits : closeness_.credits;
    for (int i = (closeness_.most_credit - kLeastCredit) / step; i >= 0; --i) {
      const int credit = closeness_.most_credit - i * step - cuts;
      if (credit > kNone) scan({cuts, credit});
    }
  }

  void scan(const Setting& setting) {
    if (!may_improve(fastest_)) return;
    const Seconds limit = closeness_.starts > 1 ? fastest_ * (1 + kStartBehind) : wanted(fastest_);
    const Seconds time = time_of(setting, coarse_road_, limit);
    if (time >= limit) return;
    starts_.push_back({setting, time});
    fastest_ = std::min(fastest_, time);
  }

  /// Moves to a better neighbour as long as there is one: more or less credit, smaller or larger pieces, and
  /// both at the same number of pieces.
  void improve(Start& start, int step) {
    constexpr std::pair<int, int> kDirections[] = {{0, -1}, {0, 1}, {-1, 0}, {1, 0}, {-1, 1}, {1, -1}};
    for (bool better = true; better;) {
      better = false;
      const Setting centre = start.setting;
      for (const auto& [cuts, credit] : kDirections)
        better |=
            try_setting(start, {centre.cuts + step * cuts, std::max(centre.credit + step * credit, kNone)});
    }
  }

  /// Whether it is better than the start, which becomes it then.
  bool try_setting(Start& start, const Setting& setting) {
    const bool exists = setting.cuts >= 0 && setting.cuts <= most_cuts_ && setting.credit <= kMostCredit;
    if (!exists || !may_improve(start.time) || std::ranges::find(tried_, setting) != tried_.end())
      return false;
    const Seconds time = time_of(setting, road_, wanted(start.time));
    if (time >= wanted(start.time)) return false;
    start = {setting, time};
    return true;
  }

  static Seconds wanted(Seconds fastest) { return fastest * (1 - kMargin); }
  bool may_improve(Seconds fastest) const { return wanted(fastest) > option_.floor(); }

  /// At least the limit where it is that or more.
  Seconds time_of(const Setting& setting, const FlatRoad& road, Seconds limit) {
    tried_.push_back(setting);
    const Bytes partition = partition_of(setting.cuts);
    if (cut_ != partition) cut(partition);
    cut_ = partition;
    plan_.credit = credit_of(setting.credit).count;
    return simulator_.time(plan_, road, limit);
  }

  /// plan_ becomes FlatPlan(by_priority(...)), but for its credit.
  void cut(Bytes partition) {
    const std::uint64_t element = element_size(job_.profile.type).count;
    const std::uint64_t most = std::max<std::uint64_t>(partition.count / element, 1) * element;
    const int servers = takes_messages_whole(option_.road) ? whole_message_servers(option_.road) : 0;
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
  const FlatRoad road_, coarse_road_;
  const Closeness closeness_;
  const Bytes largest_;
  Simulator simulator_;
  int most_cuts_ = 0;  ///< no more than kMostPieces, and none finer than kFinest
  FlatPlan plan_;
  Bytes cut_;
  std::vector<Setting> tried_;
  std::vector<Start> starts_;
  Seconds fastest_;
};

}  // namespace

Plan tuned_byte_scheduler(const Planning& job, const RoadOption& option) {
  return byte_scheduler(job, option, SettingSearch(job, option).best());
}

Plan untuned_byte_scheduler(const Planning& job, const RoadOption& option) {
  return byte_scheduler(job, option, {kServerPartition, Bytes{3 * kServerPartition.count}});
}

}  // namespace commtune::tuner
