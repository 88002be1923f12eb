#pragma once
// Random models on random clusters, the same for the same generator: what the gap benchmark asks about.

#include <random>

#include "perfmodel/cluster.h"
#include "perfmodel/profile.h"

namespace commtune::bench {

struct MadeUpJob {
  Profile profile;
  Cluster cluster;
  int workers = 2;
  int dedicated_servers = 0;
  double communication_ratio = 0;  ///< one fused ring all-reduce of all gradients over one worker's compute
};

/// Drawn until the communication ratio lies within [0.1, 10].
MadeUpJob made_up_job(std::mt19937_64& random);

/// Puts so many of the job's workers on each host, joined there by links ten times as good.
void share_hosts(MadeUpJob& job, int slots);

/// A job of `layers` layers on up to 8 workers, drawn until its communication ratio lies within [2, 10]:
/// small enough to try every plan.
MadeUpJob small_heavy_job(std::mt19937_64& random, int layers);

/// A model of so many layers with one tensor or a large and a small one each.
Profile made_up_profile(std::mt19937_64& random, int layers);

}  // namespace commtune::bench
