#include "tuner/road_factors.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "perfmodel/base/normal.h"
#include "perfmodel/cost/flat_cost.h"
#include "perfmodel/cost/stage_cost.h"
#include "perfmodel/cost/topology.h"
#include "perfmodel/simulate/simulate.h"
#include "perfmodel/simulate/workload.h"
#include "tuner/planning.h"

namespace commtune::tuner {

namespace {

/// The factor by which costs are off is smaller than this in 95 of 100 cases. A larger one has another reason
/// than streams that were measured at few sizes, or ranks that share cores.
constexpr double kLargestFactor = 4;
/// By how much costs are changed to see whether a plan shows it: by much, beside what cannot be told apart
/// (kIndifferent), and by so little that the plan works as before.
constexpr double kProbingFactor = 1.1;
constexpr int kBisections = 30;  // of the logarithm's range, 2 ln 4: until it is known to 3e-9

/// Logarithms of the factors on a road's start-ups and times per byte, or a direction between such.
struct Logarithms {
  double startup = 0, rate = 0;
};

Logarithms operator+(const Logarithms& a, const Logarithms& b) {
  return {a.startup + b.startup, a.rate + b.rate};
}
Logarithms operator*(double scale, const Logarithms& a) { return {scale * a.startup, scale * a.rate}; }
double dot(const Logarithms& a, const Logarithms& b) { return a.startup * b.startup + a.rate * b.rate; }

constexpr Logarithms kBoth{1, 1};

/// A plan's iteration as a function of the factors on its road's costs.
class FactorSearch {
 public:
  /// cluster  over the plan's transport
  FactorSearch(const Plan& plan, const Profile& profile, const Cluster& cluster)
      : cost_(road_cost(plan.road, cluster, plan.workers)),
        work_(profile, slowdown_of(cluster, plan.workers)),
        flat_(plan, work_),
        simulator_(work_) {}

  Seconds time(const Logarithms& at) {
    const RoadCost cost = scaled(cost_, std::exp(at.startup), std::exp(at.rate));
    return simulator_.time(flat_, FlatRoad(cost));
  }

  /// True if costs a tenth higher do not change the iteration noticeably against costs a tenth lower: then a
  /// run of the plan says nothing about its costs.
  bool is_flat() {
    const double far = std::log(kProbingFactor);
    return time(far * kBoth) <= time(-far * kBoth) * (1 + kIndifferent);
  }

  /// By how much the logarithm of the iteration changes with each.
  Logarithms slope(const Logarithms& at) {
    const double far = std::log(kProbingFactor);
    const auto along = [&](const Logarithms& way) {
      return std::log(time(at + far * way) / time(at + -far * way)) / (2 * far);
    };
    return {along({1, 0}), along({0, 1})};
  }

  /// So many times this way from there, the iteration is predicted as it was measured; at most the largest
  /// factor either way.
  double distance(const Logarithms& from, const Logarithms& way, Seconds measured) {
    double low = -std::log(kLargestFactor), high = -low;
    for (int i = 0; i < kBisections; ++i) {
      const double middle = (low + high) / 2;
      (time(from + middle * way) < measured ? low : high) = middle;
    }
    return (low + high) / 2;
  }

 private:
  RoadCost cost_;
  Workload work_;
  FlatPlan flat_;
  Simulator simulator_;
};

/// What is known of a road's factors: their logarithms' mean and covariance. Bayes' rule for a plan's time,
/// linearised where the plan is predicted as it was measured.
class Knowledge {
 public:
  /// before          of the road's costs
  /// plan_deviation  Cluster::plan_deviation
  Knowledge(const Deviation& before, double plan_deviation)
      : own_(kOwnPart * square(plan_deviation)),
        startup_(square(std::max(before.startup, kIndifferent))),
        rate_(square(std::max(before.rate, kIndifferent))),
        together_(before.opposed ? -before.startup * before.rate : 0) {}

  void learn(FactorSearch& search, const CheckedPlan& checked) {
    ++plans_;
    const double off = std::abs(std::log(search.time(mean_) / checked.measured));
    const double within = checked.half_width / checked.measured;
    const double noise = std::sqrt(square(within / kNormal95) + own_);
    if (off > within) move(search, checked.measured, std::hypot(noise, kBetweenRuns));
    condition(search.slope(mean_), noise);
  }

  RoadFactor factors(const TransportRoad& on) const {
    const double both = std::sqrt(startup_ * rate_);
    return {on.road,
            std::exp(mean_.startup),
            std::exp(mean_.rate),
            {std::sqrt(startup_), std::sqrt(rate_), together_ < -kOpposed * both},
            on.transport};
  }

 private:
  /// Of a correlation, from which on it counts as -1 and not as none.
  static constexpr double kOpposed = 0.5;
  static double square(double value) { return value * value; }

  /// The covariance times this.
  Logarithms spread(const Logarithms& slope) const {
    return {startup_ * slope.startup + together_ * slope.rate,
            together_ * slope.startup + rate_ * slope.rate};
  }

  /// Towards the likeliest factors with which the plan takes as long as measured: as far as costs rather than
  /// this run are why it did not. What costs may be off by grows until the measured time is no further than
  /// one standard deviation (Birge, Physical Review 40, 1932).
  ///
  /// noise  relative standard deviation of what another run of the plan, and the plan itself, may take more
  void move(FactorSearch& search, Seconds measured, double noise) {
    Logarithms step = search.distance(mean_, kBoth, measured) * kBoth;
    double far = 0;    // standard deviations
    double share = 1;  // of the variance, which costs have
    // Where a plan begins to show what it hides, its slope is another than where it hides all.
    for (int i = 0; i < kSlopes; ++i) {
      const Logarithms slope = search.slope(mean_ + step);
      Logarithms way = spread(slope);
      const double longest = std::max(std::abs(way.startup), std::abs(way.rate));
      if (!(longest > 0) || !(dot(slope, way) > 0)) break;
      way = (1 / longest) * way;
      step = search.distance(mean_, way, measured) * way;
      const double off = std::abs(dot(slope, step)), of_costs = dot(slope, spread(slope));
      far = off / std::sqrt(of_costs);
      // Runs do not differ by more than noise; costs may be off by any factor.
      share = std::max(of_costs / (of_costs + square(noise)), 1 - kNormal95 * noise / off);
    }
    // But where a plan of the road is predicted already, another one that is not is an outlier: costs that
    // suit both are far from what either says.
    if (plans_ > 1 && far > kOutlier) {
      share = std::min(share, kOutlier / far);
      far = kOutlier;
    }
    mean_ = mean_ + share * step;
    const double scale = square(std::max(1.0, far));
    startup_ *= scale;
    rate_ *= scale;
    together_ *= scale;
  }

  /// What a time leaves open whose relative standard deviation is `noise`.
  void condition(const Logarithms& slope, double noise) {
    const Logarithms gain = spread(slope);
    const double seen = dot(slope, gain) + square(noise);
    if (!(seen > 0)) return;
    startup_ -= gain.startup * gain.startup / seen;
    rate_ -= gain.rate * gain.rate / seen;
    together_ -= gain.startup * gain.rate / seen;
    startup_ = std::max(0.0, startup_);
    rate_ = std::max(0.0, rate_);
  }

  static constexpr int kSlopes = 2;
  static constexpr double kOutlier = 2;  // standard deviations

  double own_;  // variance of what a plan takes beside what its road's costs say
  int plans_ = 0;
  Logarithms mean_;
  double startup_, rate_, together_;
};

}  // namespace

void find_factor(CheckedPlan& checked, const Plan& plan, const Profile& profile, const Cluster& cluster) {
  const Cluster& over = over_transport(cluster, plan.transport);
  FactorSearch search(plan, profile, over);
  checked.digest = digest(plan);
  checked.road = plan.road;
  checked.transport = plan.transport;
  checked.workers = plan.workers;
  checked.predicted = search.time({});
  const auto logarithm_for = [&](Seconds measured) { return search.distance({}, kBoth, measured); };
  const Seconds deviation = checked.half_width / kNormal95;
  const double off = std::abs(checked.measured / checked.predicted - 1);
  const double logarithm = logarithm_for(checked.measured);
  // A run that took longer than predicted has one of two reasons: its costs are off, or something else made
  // this run late. The one that is fewer of its own standard deviations away is taken. So a plan that hides
  // all its communication, and would need absurd costs to be so late, says nothing about its costs.
  const double of_run =
      std::max(kIndifferent, std::hypot(deviation / checked.predicted, over.plan_deviation));
  const double of_costs = std::log(kLargestFactor) / kNormal95;
  checked.hidden = off <= kIndifferent ? search.is_flat() : off / of_run < std::abs(logarithm) / of_costs;
  if (checked.hidden) return;
  checked.deviation =
      (logarithm_for(checked.measured + deviation) - logarithm_for(checked.measured - deviation)) / 2;
  const bool as_predicted = off * checked.predicted <= checked.half_width;
  checked.factor = as_predicted ? 1 : std::exp(logarithm);
}

const RoadFactor* factor_of(const std::vector<RoadFactor>& factors, const TransportRoad& on) {
  const auto found = std::ranges::find_if(factors, [&](const RoadFactor& each) {
    return each.road == on.road && each.transport == on.transport;
  });
  return found == factors.end() ? nullptr : &*found;
}

std::vector<RoadFactor> road_factors(std::span<const CheckedPlan> checked, std::span<const Plan> plans,
                                     const Profile& profile, const Cluster& cluster) {
  assert(checked.size() == plans.size());
  std::vector<RoadFactor> factors;
  for (std::size_t first = 0; first < checked.size(); ++first) {
    const TransportRoad on = road_of(checked[first]);
    if (checked[first].hidden || factor_of(factors, on) != nullptr) continue;
    const Cluster& over = over_transport(cluster, on.transport);
    Knowledge knowledge(road_cost(on.road, over, checked[first].workers).deviation, over.plan_deviation);
    for (std::size_t i = first; i < checked.size(); ++i) {
      if (checked[i].hidden || road_of(checked[i]) != on) continue;
      FactorSearch search(plans[i], profile, over);
      knowledge.learn(search, checked[i]);
    }
    factors.push_back(knowledge.factors(on));
  }
  return factors;
}

}  // namespace commtune::tuner
