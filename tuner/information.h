#pragma once
// What it is worth to know the costs of a road better before a plan is chosen: the expected value of perfect
// information (Howard, IEEE Trans. Systems Science and Cybernetics 2(1), 1966). MODEL.md section 7.3. As pure
// as the rest.

#include <cstddef>
#include <vector>

#include "perfmodel/cluster.h"
#include "perfmodel/plan.h"
#include "perfmodel/profile.h"
#include "tuner/planning.h"

namespace commtune::tuner {

/// What one road's costs mean to a choice.
struct RoadValue {
  Road road;
  Seconds iteration{};  ///< of the best plan on it, as far as the costs are known
  /// By which part of itself the iteration of the chosen plan would be shorter, on average, if these costs
  /// alone were known exactly before the choice. 0: nothing that they may turn out to be changes it.
  double value = 0;
  Bytes smallest, largest;  ///< messages of the best plan on it
};

struct Information {
  std::vector<RoadValue> roads;  ///< those that may be chosen, the shortest iteration, which is chosen, first
  bool complete = true;          ///< false: time was out before all roads were tried

  const Road& chosen() const { return roads.front().road; }
  /// The largest of all values.
  double most() const;
};

struct InformationOptions {
  int workers = 0;          ///< 0: all ranks of the cluster
  std::vector<Road> roads;  ///< empty: roads_for() the cluster
  OutOfTime out_of_time;
};

/// Plans every road by the methods of its architecture, without the joint search: it moves messages, and
/// seldom a plan's place among roads. A road's costs may all be off together, as far as their fits'
/// deviations and residuals say; other roads' costs and compute stay as they are. What whole plans take
/// beside what their roads cost (Cluster::plan_deviation) is left out, since no measured operation tells of
/// it.
///
/// Throws what Planning does.
Information value_of_information(const Profile& profile, const Cluster& cluster,
                                 const InformationOptions& options = {});

}  // namespace commtune::tuner
