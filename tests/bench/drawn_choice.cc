#include "tests/bench/drawn_choice.h"

#include <algorithm>
#include <cmath>

#include "perfmodel/cost/stage_cost.h"
#include "perfmodel/cost/topology.h"
#include "perfmodel/simulate/simulate.h"
#include "perfmodel/simulate/workload.h"
#include "tuner/tuner.h"

namespace commtune::bench {

DrawnChoice choice_on(const DrawnCluster& cluster, const Cluster& fitted, const Profile& profile) {
  const Cluster truth = true_cluster(cluster);
  const auto time = [&](const Plan& plan) {
    const Workload work(profile, slowdown_of(truth, plan.workers));
    return simulate(work, plan, road_cost(plan.road, truth, plan.workers)).iteration;
  };
  tuner::TuneOptions options;
  options.roads = roads_of(cluster);
  const tuner::Answer answer = tuner::tune(profile, fitted, options);
  options.draws = 0;  // nothing of the truth is in doubt
  const tuner::Answer best = tuner::tune(profile, truth, options);
  const tuner::Entry& chosen = answer.ranking.at(answer.chosen);
  const Seconds taken = time(chosen.plan), least = time(best.ranking.at(best.chosen).plan);
  return {chosen.plan.road, best.ranking.at(best.chosen).plan.road,
          std::abs(chosen.prediction.iteration / taken - 1), std::max(0.0, taken / least - 1)};
}

}  // namespace commtune::bench
