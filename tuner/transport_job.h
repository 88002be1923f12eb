#pragma once
// A question over each of the transports that its cluster was probed over.

#include <optional>
#include <string>
#include <vector>

#include "perfmodel/cluster.h"
#include "perfmodel/profile.h"
#include "tuner/planning.h"
#include "tuner/tuner.h"

namespace commtune::tuner {

/// A question over one of the cluster's transports.
struct TransportJob {
  const Cluster* cluster;
  std::string transport;  ///< empty where the cluster has one
  Planning job;
  std::optional<Planning> narrowed;  ///< with eligible roads only
  std::vector<RoadBound> bounds;

  const Planning& preferred() const { return narrowed ? *narrowed : job; }
  TransportView view() const { return {job, *cluster, transport}; }
};

/// Of the transports over which a road can be priced. Throws what the first says where there is none.
std::vector<TransportJob> jobs_of(const Profile& profile, const Cluster& cluster, int workers,
                                  const TuneOptions& options, const OutOfTime& out_of_time);

}  // namespace commtune::tuner
