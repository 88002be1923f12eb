#pragma once
// What probes of drawn clusters found, over all of them.

#include <string>
#include <vector>

#include "tests/bench/drawn_probe.h"

namespace commtune::bench {

/// 0 of none.
double quantile(std::vector<double> values, double q);
double mean(const std::vector<double>& values);

struct Figures {
  double alone_median = 0, alone_p90 = 0, streams_median = 0, streams_p90 = 0;
  double enough = 0, regret_mean = 0, regret_worst = 0;
  BudgetSplit shares;  ///< of all time
  int held_out = 0, without_price = 0;
};
Figures figures_of(const std::vector<Findings>& all);

/// "survey 12 %, links 9 %, ..."
std::string split_text(const BudgetSplit& shares);

/// On all processors: each cluster has a noise of its own, so nothing depends on who takes which.
std::vector<Findings> findings_of(const std::vector<DrawnCluster>& clusters, const SamplingCase& how);

/// Clusters whose mean error fell or rose by more than the noise changes it.
struct Count {
  int fell = 0, rose = 0;
};
Count count_of(const std::vector<Findings>& now, const std::vector<Findings>& as_is,
               const std::vector<Findings>& again);

}  // namespace commtune::bench
