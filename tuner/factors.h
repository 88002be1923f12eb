#pragma once
// What the draws of the fits do not show: that the costs of a whole road, or the traffic of a whole plan, are
// off by a factor. MODEL.md section 7.

#include <cstdint>
#include <vector>

#include "perfmodel/cluster.h"
#include "tuner/planning.h"
#include "tuner/tuner.h"

namespace commtune::tuner {

/// The cost where all start-ups and all times per byte take exp(z * deviation) times as long, by the cost's
/// own deviation and that of plans together.
RoadCost moved(RoadCost cost, double z, double plan_deviation);

/// How the predicted iteration of an entry changes when its costs are moved() by z, a standard normal value.
struct Response {
  bool doubted = false;  ///< false: its costs have no deviation, or it is unknown
  double own = 0;  ///< part of z's variance that is this plan's own; all plans on one road share the rest
  double less = 0,
         more = 0;  ///< logarithm of the iteration at both ends of z's 90 % interval, over that at 0
};

/// The response of every entry. A doubted entry is simulated twice, at both ends of the factor's 90 %
/// interval. A plan that hides all its communication behind compute hardly responds. One that was run is in
/// doubt by Entry::run_deviation, whatever its costs are.
std::vector<Response> responses(const std::vector<Entry>& ranking, const Planning& job,
                                const Cluster& cluster, const OutOfTime& out_of_time);

/// Multiplies times[entry][draw] by a factor drawn for each road and each plan. The result has `count` draws
/// of every entry; if it was simulated on fewer, those are repeated in turn. Entries without doubt keep their
/// times.
std::vector<std::vector<double>> with_factors(const std::vector<std::vector<double>>& times,
                                              const std::vector<Entry>& ranking,
                                              const std::vector<Response>& responses, std::size_t count,
                                              std::uint64_t seed);

}  // namespace commtune::tuner
