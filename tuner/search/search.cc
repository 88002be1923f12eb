#include "tuner/search/search.h"

#include <algorithm>
#include <array>
#include <utility>

#include "perfmodel/base/error.h"
#include "perfmodel/bound/bound.h"
#include "perfmodel/bound/preemptive_bound.h"
#include "tuner/messages.h"
#include "tuner/search/local_search.h"
#include "tuner/search/merge_messages.h"
#include "tuner/search/nested_intervals.h"
#include "tuner/search/stream_plan.h"
#include "tuner/search/units.h"

namespace commtune::tuner {

namespace {

/// Stream plans from which a local search is worth its time, the best first.
constexpr std::size_t kLocalSearches = 3;
/// A seed may be this much slower than the best plan so far: the local search wins more than that back.
constexpr double kSlack = 1.1;
/// What the least credit may cost on all-reduce roads: the fewer messages are under way, the less depends on
/// how they share links, in which hosts are not alike. Through servers the most urgent overtakes.
constexpr double kCreditPrice = 1.005;
constexpr Bytes kSmallestCredit{16_KiB};  // but for none
/// Roads with a channel for each stage need small messages to keep both busy.
constexpr SearchUnitOptions kFine{1.0 / 192, 1.0 / 64, 1.0 / 192};
/// Sums in another order differ by this part.
constexpr double kRounding = 1e-12;

/// Costs over those that were fitted, with which fewer messages must do no harm either.
constexpr std::array kOtherNetworks{1.0, 0.9, 1.1};

struct Promising {
  const RoadOption* option;
  StreamPlan stream_plan;
  double time;
};

class Search {
 public:
  Search(const Planning& job, const std::vector<PredictedPlan>& starts, const SearchOptions& options)
      : job_(job),
        options_(options),
        stream_(job),
        coarse_(units_of(job)),
        fine_(units_of(job, kFine)),
        simulator_(job.work) {
    const auto first = std::min_element(starts.begin(), starts.end(), faster);
    best_ = *first;
    fastest_ = best_time();
    start_ = best_time();
    for (const RoadOption& option : job.roads) roads_.push_back(&option);
    for (const RoadOption& option : job.whole) {
      if (option.road == first->plan.road) roads_.push_back(&option);
    }
    bound_ = roads_.front()->floor().count();
    for (const RoadOption* option : roads_) bound_ = std::min(bound_, option->floor().count());
  }

  SearchReport run() {
    if (stream_.tensors() > 0) try_preemptive_plans();
    if (stream_.tensors() > 0 && !good_enough()) {
      search_from_best(seeds());
    }
    if (stream_.tensors() > 0 && good_enough()) merge_messages();
    SearchReport report;
    report.stop = good_enough()                                ? StopReason::kBound
                  : simulator_.events() >= options_.max_events ? StopReason::kBudget
                  : out()                                      ? StopReason::kTime
                                                               : StopReason::kNoBetter;
    report.best = std::move(best_.plan);
    report.prediction = best_.prediction;
    report.events = simulator_.events();
    return report;
  }

 private:
  static bool faster(const PredictedPlan& a, const PredictedPlan& b) {
    return a.prediction.iteration < b.prediction.iteration;
  }

  double best_time() const { return best_.prediction.iteration.count(); }
  double target() const { return bound_ * (1 + options_.gap_limit); }
  bool good_enough() const { return best_time() <= target(); }
  bool out() const { return is_out(options_.out_of_time); }
  bool over() const { return good_enough() || simulator_.events() >= options_.max_events || out(); }

  /// The schedules by nested intervals on every road that could still win.
  std::vector<Promising> seeds() {
    std::vector<const RoadOption*> roads = roads_;
    std::stable_sort(roads.begin(), roads.end(),
                     [](const RoadOption* a, const RoadOption* b) { return a->floor() < b->floor(); });
    std::vector<Promising> stream_plans;
    for (const RoadOption* option : roads) {
      if (option->cost.shared_channel) {
        add_seed(stream_plans, *option, coarse_, {});
        if (may_part(*option)) add_seed(stream_plans, *option, coarse_, {.parted = true});
      } else {
        add_seed(stream_plans, *option, coarse_, {});
        for (const double largest : {1.0 / 2, 1.0 / 4})
          add_seed(stream_plans, *option, coarse_, {.largest = largest});
        for (double largest = 1.0 / 8; largest >= 1.0 / 128; largest /= 2) {
          add_seed(stream_plans, *option, fine_, {.largest = largest});
        }
      }
    }
    return stream_plans;
  }

  void add_seed(std::vector<Promising>& stream_plans, const RoadOption& option,
                const std::vector<SearchUnit>& units, const NestedIntervalOptions& options) {
    if (option.floor().count() >= fastest_ || fastest_ <= target() || out()) return;
    const double worst = kSlack * job_.work.clock(fastest_ - option.cost.straggling.count());
    const std::vector<Block> blocks =
        nested_interval_blocks(units, option.cost, job_.work.total_backward, worst, options);
    if (blocks.empty()) return;
    Promising found{&option, stream_plan_of(units, blocks, stream_, options.parted), 0};
    flatten(found.stream_plan, stream_, flat_);
    found.time = simulator_.run(flat_, option.cost).iteration.count();
    fastest_ = std::min(fastest_, found.time);
    stream_plans.push_back(std::move(found));
  }

  /// Two stages on one channel that the road can run apart.
  static bool may_part(const RoadOption& option) {
    return architecture_of(option.road) == Architecture::kAllReduce && !option.cost.distribute.alone.empty();
  }

  /// The messages that are best where the more urgent overtakes, on roads over servers that all of them
  /// share and on which it may: as if nothing ever waited for what sockets hold, once, and in every round.
  void try_preemptive_plans() {
    std::vector<Promising> found;
    for (const RoadOption* option : roads_) {
      if (!may_overtake(*option)) continue;
      for (const int waits : {0, 1, 2}) {
        if (good_enough() || option->floor().count() >= best_time() || out()) break;
        if (waits > 0 && option->cost.head_of_line == Seconds{0}) break;
        Promising each{option, preemptive_plan(*option, waits), 0};
        flatten(each.stream_plan, stream_, flat_);
        each.time = simulator_.run(flat_, option->cost).iteration.count();
        if (each.time < best_time()) keep(each);
        found.push_back(std::move(each));
      }
    }
    search_from_best(std::move(found));
    fastest_ = std::min(fastest_, best_time());
  }

  /// Local searches from the fastest of these.
  void search_from_best(std::vector<Promising> found) {
    std::ranges::stable_sort(found, {}, &Promising::time);
    for (std::size_t i = 0; i < std::min(kLocalSearches, found.size()) && !over(); ++i) search_from(found[i]);
  }

  static bool may_overtake(const RoadOption& option) {
    const RoadCost& cost = option.cost;
    return !needs_one_order(option.road) && cost.through_servers && cost.shared_channel &&
           whole_message_servers(option.road) == 0;
  }

  StreamPlan preemptive_plan(const RoadOption& option, int waits) const {
    const std::vector<double> places =
        preemptive_messages(job_.work, preemptive_channel(option.cost, waits), job_.work.compute());
    StreamPlan stream_plan;
    stream_plan.credit = kUnlimited;
    for (auto place = places.rbegin(); place != places.rend(); ++place) {
      const std::uint64_t from_front = std::min(static_cast<std::uint64_t>(*place), stream_.bytes()) /
                                       stream_.element() * stream_.element();
      const std::uint64_t at = stream_.bytes() - from_front;
      if (at > (stream_plan.ends.empty() ? 0 : stream_plan.ends.back().at))
        stream_plan.ends.push_back(stream_.cut(at));
    }
    stream_plan.ends.push_back(stream_.cut(stream_.bytes()));
    order_by_layer(stream_plan);
    return stream_plan;
  }

  /// Where messages may overtake, in the order of a list first and from there by layer.
  void search_from(Promising& found) {
    const LocalSearchLimits limits{
        target(), std::min(options_.max_events, simulator_.events() + options_.max_events / kLocalSearches),
        options_.out_of_time};
    const double time = local_search(found.stream_plan, stream_, found.option->cost, simulator_, limits);
    if (time < best_time()) keep(found);
    if (found.stream_plan.by_layer || !may_overtake(*found.option) || over()) return;
    order_by_layer(found.stream_plan);
    search_from(found);
  }

  /// The same in fewer messages, where communication hides with room to spare: on the network that was
  /// measured and on ones somewhat faster and slower the plan is near the bound, and so must it stay.
  /// Neighbours are merged in the best plan itself and, where that is a start, in one that is searched for on
  /// its road.
  void merge_messages() {
    const RoadOption* const option = job_.option_of(best_.plan.road);
    if (!best_.plan.server.empty()) return;  // merged messages would have to be dealt out anew
    const FlatPlan now(best_.plan, job_.work);
    std::vector<Allowed> allowed;
    for (const double factor : kOtherNetworks) {
      if (out()) return;
      Allowed there{slower(option->cost, factor), {}};
      there.time = simulator_.time(now, FlatRoad(there.cost)) * (1 + kRounding);
      if (there.time > lower_bounds(job_.work, there.cost).simulated * (1 + options_.gap_limit)) return;
      allowed.push_back(std::move(there));
    }
    const std::uint64_t max_events = simulator_.events() + options_.max_events / kLocalSearches;
    std::vector<StreamPlan> stream_plans;
    if (auto same = stream_plan_from(best_.plan, stream_)) stream_plans.push_back(*std::move(same));
    if (best_time() >= start_)
      add_searched(stream_plans, *option, {allowed.front().time.count(), max_events, options_.out_of_time});
    for (StreamPlan& stream_plan : stream_plans) {
      if (out() ||
          !tuner::merge_messages(stream_plan, stream_, simulator_, allowed, max_events, options_.out_of_time))
        continue;
      if (stream_plan.ends.size() >= best_.plan.messages.size()) continue;
      Plan plan = plan_of(stream_plan, stream_, job_, option->road);
      const Prediction prediction = simulator_.run(plan, option->cost);
      best_ = {std::move(plan), prediction};
      simplify(option->cost);
    }
  }

  void add_searched(std::vector<StreamPlan>& stream_plans, const RoadOption& option,
                    const LocalSearchLimits& limits) {
    const double worst = kSlack * job_.work.clock(best_time() - option.cost.straggling.count());
    const auto blocks = nested_interval_blocks(coarse_, option.cost, job_.work.total_backward, worst);
    if (blocks.empty()) return;
    stream_plans.push_back(stream_plan_of(coarse_, blocks, stream_, false));
    local_search(stream_plans.back(), stream_, option.cost, simulator_, limits);
  }

  void keep(const Promising& found) {
    Plan plan = plan_of(found.stream_plan, stream_, job_, found.option->road);
    const Prediction prediction = simulator_.run(plan, found.option->cost);
    best_ = {std::move(plan), prediction};
    simplify(found.option->cost);
  }

  /// The least credit that costs (almost) nothing, and one barrier for all where that costs nothing and the
  /// job has none of its own.
  void simplify(const RoadCost& cost) {
    if (out()) return;
    if (!cost.through_servers) choose_credit(cost);
    if (job_.barrier) return;
    FlatPlan flat(best_.plan, job_.work);
    flat.barrier = Barrier::kFull;
    const Prediction prediction = simulator_.run(flat, cost);
    if (prediction.iteration.count() > best_time()) return;
    best_.plan.barrier = Barrier::kFull;
    best_.prediction = prediction;
  }

  void choose_credit(const RoadCost& cost) {
    struct Tried {
      Bytes credit;
      Prediction prediction;
      Seconds time() const { return prediction.iteration; }
    };
    std::vector<Tried> tried;
    FlatPlan flat(best_.plan, job_.work);
    Bytes credit;
    for (Bytes next = kSmallestCredit; credit.count < stream_.bytes(); next = Bytes{next.count * 2}) {
      flat.credit = credit.count;
      tried.push_back({credit, simulator_.run(flat, cost)});
      if (out()) break;
      credit = next;
    }
    const double least = std::ranges::min_element(tried, {}, &Tried::time)->time().count();
    const double limit = std::min(std::min(least, best_time()) * kCreditPrice, std::max(best_time(), start_));
    const auto chosen =
        std::ranges::find_if(tried, [&](const Tried& each) { return each.time().count() <= limit; });
    if (chosen == tried.end()) return;
    best_.plan.credit = chosen->credit;
    best_.prediction = chosen->prediction;
  }

  const Planning& job_;
  const SearchOptions options_;
  std::vector<const RoadOption*> roads_;  ///< the job's, and the best start's own
  const GradientStream stream_;
  const std::vector<SearchUnit> coarse_, fine_;
  Simulator simulator_;
  FlatPlan flat_;
  PredictedPlan best_;
  double bound_ = 0;
  double start_ = 0;    ///< of the best start: never to be worse than it
  double fastest_ = 0;  ///< of the starts and the seeds so far
};

}  // namespace

void SearchOptions::check() const {
  if (!(gap_limit >= 0)) {
    throw Error(ErrorCode::kBadInput, "gap_limit = " + std::to_string(gap_limit) + ": must be at least 0");
  }
}

SearchReport joint_search(const Planning& job, const std::vector<PredictedPlan>& starts,
                          const SearchOptions& options) {
  options.check();
  if (starts.empty()) throw Error(ErrorCode::kBadInput, "starts: at least one plan to start from");
  return Search{job, starts, options}.run();
}

}  // namespace commtune::tuner
