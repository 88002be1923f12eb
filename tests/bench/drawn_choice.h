#pragma once
// What a model's plan is worth that was chosen on a probe's fits, on a drawn cluster whose costs are known.

#include "perfmodel/cluster.h"
#include "perfmodel/profile.h"
#include "tests/bench/drawn_cluster.h"

namespace commtune::bench {

struct DrawnChoice {
  Road chosen, best;  ///< by the fits, and by the true costs
  double error = 0;   ///< of its predicted iteration, over the true one, minus 1, without its sign
  double regret = 0;  ///< its true iteration over that of the plan chosen by the true costs, minus 1
};

/// The plan that the product chooses for a model on these fits.
DrawnChoice choice_on(const DrawnCluster& cluster, const Cluster& fitted, const Profile& profile);

}  // namespace commtune::bench
