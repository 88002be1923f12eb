#include "tuner/information.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "perfmodel/base/error.h"
#include "perfmodel/base/normal.h"
#include "perfmodel/cost/flat_cost.h"
#include "perfmodel/cost/prediction_limits.h"
#include "perfmodel/cost/stage_cost.h"
#include "perfmodel/simulate/simulate.h"
#include "tuner/factors.h"
#include "tuner/methods/method.h"
#include "tuner/search/search.h"

namespace commtune::tuner {

namespace {

/// The logarithm of an iteration where its road's costs are at either end of their 90 % interval, over that
/// where they are as fitted.
struct Reach {
  double less = 0, more = 0;
  double at(double z) const { return (z < 0 ? -less : more) * z / kNormal90; }
};

/// Beyond so many standard deviations there is 0.006 % of a normal distribution.
constexpr double kFar = 4;

/// The mean of a function of a standard normal value.
template <typename Function>
double expectation(const Function& function) {
  constexpr double kStep = 0.125;  // far narrower than the bell
  double sum = 0, weights = 0;
  for (double z = -kFar; z <= kFar; z += kStep) {
    const double weight = std::exp(-z * z / 2);
    sum += weight * function(z);
    weights += weight;
  }
  return sum / weights;
}

class Roads {
 public:
  Roads(const Planning& job, const Cluster& cluster, const OutOfTime& out_of_time)
      : job_(job),
        lower_(at_limits(cluster, Limit::kLower)),
        upper_(at_limits(cluster, Limit::kUpper)),
        out_of_time_(out_of_time),
        simulator_(job.work) {}

  /// Best first, without their values.
  Information plan() {
    std::vector<const RoadOption*> options;
    for (const RoadOption& option : job_.roads) options.push_back(&option);
    std::ranges::stable_sort(options, {}, [](const RoadOption* option) { return option->floor(); });
    for (const RoadOption* option : options) {
      if (is_out(out_of_time_)) {
        information_.complete = false;
        break;
      }
      if (!may_be_chosen(*option)) continue;
      if (auto best = best_on(*option)) candidates_.push_back({option, std::move(*best), {}});
    }
    if (candidates_.empty()) throw Error(ErrorCode::kTimeout, kNothingInTime);
    std::ranges::stable_sort(candidates_, {}, [](const Candidate& one) { return one.time(); });
    for (Candidate& candidate : candidates_) {
      candidate.reach = reach_of(candidate);
      information_.roads.push_back(described(candidate));
    }
    for (std::size_t i = 0; i < candidates_.size(); ++i) information_.roads[i].value = value_of(i);
    return std::move(information_);
  }

 private:
  struct Candidate {
    const RoadOption* option = nullptr;
    PredictedPlan best;
    Reach reach;
    double time() const { return best.prediction.iteration.count(); }
  };

  /// False where not even with the least of its costs could a plan on the road be the fastest.
  bool may_be_chosen(const RoadOption& option) const {
    const double least = std::exp(-kFar * option.cost.deviation.largest());
    return std::ranges::all_of(
        candidates_, [&](const Candidate& known) { return option.floor().count() * least < known.time(); });
  }

  std::optional<PredictedPlan> best_on(const RoadOption& option) {
    std::optional<PredictedPlan> best;
    for (const Method& method : methods()) {
      if (method.architecture != architecture_of(option.road)) continue;
      if (best && is_out(out_of_time_)) break;
      Plan plan = method.build(job_, option);
      const Prediction prediction = simulator_.run(plan, option.cost);
      if (!best || prediction.iteration < best->prediction.iteration)
        best = PredictedPlan{std::move(plan), prediction};
    }
    return best;
  }

  /// What the fits' deviations leave open and what their samples scatter by are independent of each other.
  Reach reach_of(const Candidate& candidate) {
    const FlatPlan flat(candidate.best.plan, job_.work);
    const RoadCost& fitted = candidate.option->cost;
    const Seconds base = comparable_to(Seconds{candidate.time()}, simulator_, flat, fitted);
    const auto logarithm = [&](const RoadCost& cost) {
      return std::log(comparable_time(simulator_, flat, cost) / base);
    };
    const auto by_samples = [&](const Cluster& cluster) {
      return logarithm(road_cost(candidate.option->road, cluster, job_.workers));
    };
    Reach reach{std::min(0.0, by_samples(lower_)), std::max(0.0, by_samples(upper_))};
    for (const CostError& error : errors_of(candidate.option->cost, 0)) {
      const auto [low, high] = std::minmax({logarithm(with_error(candidate.option->cost, -kNormal90, error)),
                                            logarithm(with_error(candidate.option->cost, kNormal90, error))});
      reach.less = -std::hypot(reach.less, std::min(0.0, low));
      reach.more = std::hypot(reach.more, std::max(0.0, high));
    }
    return reach;
  }

  RoadValue described(const Candidate& candidate) const {
    RoadValue result;
    result.road = candidate.option->road;
    result.iteration = candidate.best.prediction.iteration;
    for (const Message& message : candidate.best.plan.messages) {
      const Bytes size = message_bytes(message);
      result.smallest = result.largest == Bytes{0} ? size : std::min(result.smallest, size);
      result.largest = std::max(result.largest, size);
    }
    return result;
  }

  /// Of the chosen road: that it turns out to be dearer than the next one. Of another: cheaper than the
  /// chosen.
  double value_of(std::size_t index) const {
    if (candidates_.size() < 2) return 0;
    const Candidate& candidate = candidates_[index];
    if (index == 0) {
      const double next = candidates_[1].time();
      return expectation([&](double z) {
        return std::max(0.0, 1 - next / (candidate.time() * std::exp(candidate.reach.at(z))));
      });
    }
    const double chosen = candidates_[0].time();
    return expectation([&](double z) {
      return std::max(0.0, 1 - candidate.time() * std::exp(candidate.reach.at(z)) / chosen);
    });
  }

  const Planning& job_;
  const Cluster lower_, upper_;
  const OutOfTime& out_of_time_;
  Simulator simulator_;
  std::vector<Candidate> candidates_;
  Information information_;
};

}  // namespace

double Information::most() const {
  double most = 0;
  for (const RoadValue& road : roads) most = std::max(most, road.value);
  return most;
}

Information value_of_information(const Profile& profile, const Cluster& cluster,
                                 const InformationOptions& options) {
  const int workers = options.workers > 0 ? options.workers : cluster.ranks();
  const std::vector<Road> roads = options.roads.empty() ? roads_for(cluster, workers, {}) : options.roads;
  const Planning job(profile, cluster, workers, roads, options.out_of_time);
  return Roads(job, cluster, options.out_of_time).plan();
}

}  // namespace commtune::tuner
