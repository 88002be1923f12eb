#pragma once
// The entries of a ranking simulated on draws of the fits, each as far as its times may matter.

#include <optional>
#include <vector>

#include "perfmodel/simulate/simulate.h"
#include "tuner/cluster_draws.h"
#include "tuner/planning.h"
#include "tuner/tuner.h"

namespace commtune::tuner {

/// A plan that is the best one in this share of the draws wins clearly.
inline constexpr double kSure = 0.9;
/// Differences of regret that are rounding.
inline constexpr double kSame = 1e-9;

/// times[entry][draw]
using Times = std::vector<std::vector<double>>;

/// Whether nothing was faster on the draw, but for rounding.
inline bool is_best(double time, double best) { return time <= best * (1 + kSame); }

/// By draw.
std::vector<double> best_of(const Times& times);

/// Share of its draws in which an entry is the best one.
double share_of_wins(const std::vector<double>& times, const std::vector<double>& best);

/// The roads of a ranking's plans, each once.
std::vector<Road> roads_of(const std::vector<Entry>& ranking);

/// The job where traffic is slowed by another contention than was fitted.
struct Slowed {
  Slowed(const Planning& job, const Cluster& cluster)
      : work(job.profile, slowdown_of(cluster, job.workers)), simulator(work) {}
  Workload work;
  Simulator simulator;
};

/// Times of the entries on the draws; nothing when time was out before the end. After each heat, of 4 draws,
/// 8 and 16, a plan is simulated on no more of them that cannot be chosen, and after the last one that takes
/// surely the same beside the leader. Its times on the others are the leader's, by what it took beside that.
///
/// comparable  comparable_times() of the ranking
std::optional<Times> race(const std::vector<Entry>& ranking, const std::vector<Seconds>& comparable,
                          const Planning& job, ClusterDraws& clusters, int draws,
                          const OutOfTime& out_of_time);

}  // namespace commtune::tuner
