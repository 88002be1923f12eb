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

/// How an entry's iteration responds as all that it sends is moved() by z.
struct Response {
  bool doubted = false;
  double own = 0;  ///< the plan's own part of z's variance; the rest all plans on the road share
  double less = 0,
         more = 0;  ///< logarithm of the iteration at both ends of z's 90 % interval, over that at 0
};

/// Of every entry, from two simulations each where it is in doubt: at both ends of the factor's 90 %
/// interval. One that hides all that it sends hardly responds.
std::vector<Response> responses(const std::vector<Entry>& ranking, const Planning& job,
                                const Cluster& cluster, const OutOfTime& out_of_time);

/// times[entry][draw] with a factor drawn for each road and each plan; every entry has `count` draws, for
/// which those that it was simulated on serve in turn. Entries without doubt keep their times.
std::vector<std::vector<double>> with_factors(const std::vector<std::vector<double>>& times,
                                              const std::vector<Entry>& ranking,
                                              const std::vector<Response>& responses, std::size_t count,
                                              std::uint64_t seed);

}  // namespace commtune::tuner
