#pragma once
// Lets the sampling plan spend a budget on a drawn cluster, fits what it found with the product's own fits,
// and compares what these say with the truth.

#include <cstdint>
#include <string>
#include <vector>

#include "perfmodel/cluster.h"
#include "perfmodel/profile.h"
#include "probes/sampling/sampling_gains.h"
#include "tests/bench/drawn_cluster.h"

namespace commtune::bench {

/// Seconds of a budget, by what they went into.
struct BudgetSplit {
  double survey = 0, links = 0, first_sizes = 0, refinement = 0, planning = 0, rest = 0;
  double whole() const { return survey + links + first_sizes + refinement + planning + rest; }
};

/// What was said of one road's cost at a size that was not measured.
struct HeldOut {
  double error = 0;  ///< of said over true, minus 1, without its sign
  bool streamed = false;
};

struct Findings {
  std::vector<HeldOut> held_out;
  int curves = 0;         ///< roads' operations, alone and streamed
  int with_enough = 0;    ///< of them measured at sizes that a fit may rest on
  int without_price = 0;  ///< neither fits nor formulas say anything of them
  /// The road that is said to be the cheapest for a stream of 256 KiB over the cheapest one, minus 1: what is
  /// lost by searching over many roads.
  double regret = 0;
  BudgetSplit spent;
  bool settled = false;  ///< it ended early, since the choice was certain
  Cluster fitted;        ///< to what was measured

  /// Mean of the logarithms of 1 + error.
  double mean_error() const;
};

struct SamplingCase {
  probes::SamplingGains gains;
  double budget_factor = 1;  ///< times the default
  std::uint64_t noise_seed = 1;
  std::vector<Profile> profiles{};  ///< that are planned at interim looks; none: there are no looks
  bool are_all = false;             ///< PlanAdvisorOptions::are_all
  int bootstrap = 0;                ///< of the last fit; 0: its doubt is not asked for
};

Findings probe_drawn(const DrawnCluster& cluster, const SamplingCase& how);

}  // namespace commtune::bench
