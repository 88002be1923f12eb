#include "tuner/road_factors.h"

#include <Eigen/Core>
#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

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
const double kLargestDeviation = std::log(kLargestFactor) / kNormal95;
/// By how much costs are changed to see whether a plan shows it: by much, beside what cannot be told apart
/// (kIndifferent), and by so little that the plan works as before.
constexpr double kProbingFactor = 1.1;
constexpr int kBisections = 30;  // of the logarithm's range, 2 ln 4: until it is known to 3e-9

/// What may be off of a road, as logarithms of factors, or a direction between such: the start-ups and times
/// per byte of messages alone, those of streams, and all four by the same, as where ranks share cores.
using Logarithms = Eigen::Vector<double, 5>;
enum Part { kAloneStartup, kAloneRate, kStreamedStartup, kStreamedRate, kCommon };
using Covariance = Eigen::Matrix<double, 5, 5>;

Logarithms only(Part part) { return Logarithms::Unit(part); }

/// The factors on a kind's costs.
CostFactor factor_at(const Logarithms& at, Part startup, Part rate) {
  return {std::exp(at[startup] + at[kCommon]), std::exp(at[rate] + at[kCommon])};
}
CostFactor alone_at(const Logarithms& at) { return factor_at(at, kAloneStartup, kAloneRate); }
CostFactor streamed_at(const Logarithms& at) { return factor_at(at, kStreamedStartup, kStreamedRate); }

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
    const RoadCost cost = scaled(cost_, alone_at(at), streamed_at(at));
    return simulator_.time(flat_, FlatRoad(cost));
  }

  /// True if costs a tenth higher do not change the iteration noticeably against costs a tenth lower: then a
  /// run of the plan says nothing about its costs.
  bool is_flat() {
    const double far = std::log(kProbingFactor);
    return time(far * only(kCommon)) <= time(-far * only(kCommon)) * (1 + kIndifferent);
  }

  /// Of the road's costs, as a standard deviation of their logarithm.
  double deviation(double of_plans) const {
    return std::min(std::hypot(cost_.deviation.largest(), of_plans), kLargestDeviation);
  }

  /// By how much the logarithm of the iteration changes with each.
  Logarithms slope(const Logarithms& at) {
    const double far = std::log(kProbingFactor);
    Logarithms slope;
    for (const Part part : {kAloneStartup, kAloneRate, kStreamedStartup, kStreamedRate, kCommon}) {
      slope[part] = std::log(time(at + far * only(part)) / time(at - far * only(part))) / (2 * far);
    }
    return slope;
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

double square(double value) { return value * value; }

/// What is known of a road's factors: their logarithms' mean and covariance. Bayes' rule for a plan's time,
/// linearised where the plan is predicted as it was measured.
class Knowledge {
 public:
  /// before          the road's costs
  /// plan_deviation  Cluster::plan_deviation
  Knowledge(const RoadCost& before, double plan_deviation) : own_(kOwnPart * square(plan_deviation)) {
    const auto [startups, rates] = likeness(before);
    Covariance correlation = Covariance::Identity(), of_normals = Covariance::Zero();
    doubt(before.deviation.alone, kAloneStartup, kAloneRate, correlation, of_normals);
    doubt(before.deviation.streamed, kStreamedStartup, kStreamedRate, correlation, of_normals);
    tie(kAloneStartup, kStreamedStartup, startups, of_normals);
    tie(kAloneRate, kStreamedRate, rates, of_normals);
    of_normals(kCommon, kCommon) = std::sqrt(1 - kOwnPart) * plan_deviation;
    covariance_ = of_normals * correlation * of_normals.transpose();
  }

  void learn(FactorSearch& search, const CheckedPlan& checked) {
    ++plans_;
    const double off = std::abs(std::log(search.time(mean_) / checked.measured));
    const double within = checked.half_width / checked.measured;
    const double noise = std::sqrt(square(within / kNormal95) + own_);
    if (off > within) move(search, checked.measured, std::hypot(noise, kBetweenRuns));
    condition(search.slope(mean_), noise);
  }

  RoadFactor factors(const TransportRoad& on) const {
    return {on.road, factor(kAloneStartup, kAloneRate), factor(kStreamedStartup, kStreamedRate),
            on.transport};
  }

 private:
  /// Of a correlation, from which on it counts as -1 and not as none.
  static constexpr double kOpposed = 0.5;

  /// What the smallest messages take in a stream by what they take alone, and the largest: 1 where streams
  /// hide nothing.
  static std::pair<double, double> likeness(const RoadCost& cost) {
    const auto at = [&](Bytes size) {
      const double alone = cost.both.alone(size).count();
      return alone > 0 ? std::min(1.0, cost.both.occupancy(size).count() / alone) : 1.0;
    };
    return {at(cost.measured_smallest), at(cost.measured_largest)};
  }

  /// A kind's own errors are normal values times its deviations.
  static void doubt(const Deviation& before, Part startup, Part rate, Covariance& correlation,
                    Covariance& of_normals) {
    of_normals(startup, startup) = std::max(before.startup, kIndifferent);
    of_normals(rate, rate) = std::max(before.rate, kIndifferent);
    if (before.opposed) correlation(startup, rate) = correlation(rate, startup) = -1;
  }

  /// What streams take is what messages alone do but for what they hide: they are off alike by so much.
  static void tie(Part alone, Part streamed, double likeness, Covariance& of_normals) {
    const double deviation = of_normals(streamed, streamed);
    of_normals(streamed, alone) = likeness * deviation;
    of_normals(streamed, streamed) = std::sqrt(1 - square(likeness)) * deviation;
  }

  /// What all have in common stays plan_deviation's.
  CostFactor factor(Part startup, Part rate) const {
    CostFactor factor = factor_at(mean_, startup, rate);
    const double of_startup = std::sqrt(covariance_(startup, startup)),
                 of_rate = std::sqrt(covariance_(rate, rate));
    factor.deviation = {of_startup, of_rate, covariance_(startup, rate) < -kOpposed * of_startup * of_rate};
    return factor;
  }

  /// Towards the likeliest factors with which the plan takes as long as measured: as far as costs rather than
  /// this run are why it did not. What costs may be off by grows until the measured time is no further than
  /// one standard deviation (Birge, Physical Review 40, 1932).
  ///
  /// noise  relative standard deviation of what another run of the plan, and the plan itself, may take more
  void move(FactorSearch& search, Seconds measured, double noise) {
    const Logarithms step = step_to(search, measured);
    const Logarithms slope = search.slope(mean_ + step);
    const double of_costs = slope.dot(covariance_ * slope);
    if (!(of_costs > 0)) return;
    const double off = std::abs(slope.dot(step));
    double far = off / std::sqrt(of_costs);  // standard deviations
    // Runs do not differ by more than noise; costs may be off by any factor.
    double share = std::max(of_costs / (of_costs + square(noise)), 1 - kNormal95 * noise / off);
    // But where a plan of the road is predicted already, another one that is not is an outlier: costs that
    // suit both are far from what either says.
    if (plans_ > 1 && far > kOutlier) {
      share = std::min(share, kOutlier / far);
      far = kOutlier;
    }
    mean_ += share * step;
    raise(std::max(1.0, far));
  }

  /// Standard deviations become so many times as large, as far as kLargestFactor allows.
  void raise(double times) {
    const auto larger = [&](double variance) {
      const double most = variance > 0 ? kLargestDeviation / std::sqrt(variance) : 1;
      return std::min(times, std::max(1.0, most));
    };
    const Logarithms by = covariance_.diagonal().unaryExpr(larger);
    covariance_ = by.asDiagonal() * covariance_ * by.asDiagonal();
  }

  /// The way that a slope says is the likeliest, its largest part 1; that of all alike where it says nothing.
  Logarithms likeliest_way(const Logarithms& slope) const {
    const Logarithms way = covariance_ * (slope.isZero() ? Logarithms(Logarithms::Ones()) : slope);
    return way / way.lpNorm<Eigen::Infinity>();
  }

  /// From the mean to where the plan takes as long as measured, by the slope there: where a plan begins to
  /// show what it hides, its slope is another than where it hides all. All alike where no such way leads
  /// there.
  Logarithms step_to(FactorSearch& search, Seconds measured) const {
    const Logarithms alike = search.distance(mean_, only(kCommon), measured) * only(kCommon);
    Logarithms step = alike;
    for (int i = 0; i < kSlopes; ++i) {
      const Logarithms way = likeliest_way(search.slope(mean_ + step));
      step = search.distance(mean_, way, measured) * way;
    }
    const bool is_reached = std::abs(std::log(search.time(mean_ + step) / measured)) < kIndifferent;
    return is_reached ? step : alike;
  }

  /// What a time leaves open whose relative standard deviation is `noise`.
  void condition(const Logarithms& slope, double noise) {
    const Logarithms gain = covariance_ * slope;
    const double seen = slope.dot(gain) + square(noise);
    if (!(seen > 0)) return;
    covariance_ -= gain * gain.transpose() / seen;
    covariance_.diagonal() = covariance_.diagonal().cwiseMax(0);
  }

  static constexpr int kSlopes = 2;
  static constexpr double kOutlier = 2;  // standard deviations

  double own_;  // variance of what a plan takes beside what its road's costs say
  int plans_ = 0;
  Logarithms mean_ = Logarithms::Zero();
  Covariance covariance_ = Covariance::Zero();
};

}  // namespace

void find_factor(CheckedPlan& checked, const Plan& plan, const Profile& profile, const Cluster& cluster) {
  const Cluster& over = over_transport(cluster, plan.transport);
  FactorSearch search(plan, profile, over);
  checked.digest = digest(plan);
  checked.road = plan.road;
  checked.transport = plan.transport;
  checked.workers = plan.workers;
  checked.predicted = search.time(Logarithms::Zero());
  const auto logarithm_for = [&](Seconds measured) {
    return search.distance(Logarithms::Zero(), only(kCommon), measured);
  };
  const Seconds deviation = checked.half_width / kNormal95;
  const double off = std::abs(checked.measured / checked.predicted - 1);
  const double logarithm = logarithm_for(checked.measured);
  // A run that took longer than predicted has one of two reasons: its costs are off, or something else made
  // this run late. The one that is fewer of its own standard deviations away is taken. So a plan that hides
  // all its communication, and would need absurd costs to be so late, says nothing about its costs.
  const double of_run =
      std::max(kIndifferent, std::hypot(deviation / checked.predicted, over.plan_deviation));
  // A run that hides what it sends by a margin is late by what its ranks wait for each other, or for a core;
  // to be so by its costs, these have to be off by more than they are in doubt.
  const bool is_flat = search.is_flat();
  const double of_costs = is_flat && checked.measured > checked.predicted
                              ? search.deviation(over.plan_deviation)
                              : kLargestDeviation;
  checked.hidden = off <= kIndifferent ? is_flat : off / of_run < std::abs(logarithm) / of_costs;
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

Seconds late_by(const CheckedPlan& checked, const Plan& plan, const Profile& profile,
                const Cluster& cluster) {
  if (!checked.hidden) return Seconds{0};
  FactorSearch search(plan, profile, over_transport(cluster, plan.transport));
  const Seconds predicted = search.time(Logarithms::Zero());
  return std::max(Seconds{0},
                  expected_after_run(predicted, checked.measured, checked.half_width) - predicted);
}

std::vector<RoadFactor> road_factors(std::span<const CheckedPlan> checked, std::span<const Plan> plans,
                                     const Profile& profile, const Cluster& cluster) {
  assert(checked.size() == plans.size());
  std::vector<RoadFactor> factors;
  for (std::size_t first = 0; first < checked.size(); ++first) {
    const TransportRoad on = road_of(checked[first]);
    if (checked[first].hidden || factor_of(factors, on) != nullptr) continue;
    const Cluster& over = over_transport(cluster, on.transport);
    Knowledge knowledge(road_cost(on.road, over, checked[first].workers), over.plan_deviation);
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
