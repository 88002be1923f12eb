#pragma once
// What a training program measures and plans by itself, where nobody did it beforehand.

#include <memory>
#include <optional>
#include <string>

#include "api/c/training_session.h"
#include "perfmodel/cluster.h"
#include "perfmodel/plan.h"
#include "perfmodel/profile.h"

namespace commtune::api {

struct RankProbe {
  std::string cluster = "training";  ///< its name
  std::optional<Seconds> budget;     ///< nullopt: by the number of hosts
  Bytes traffic;                     ///< that any one rank may send in all; 0: no limit
  std::optional<Profile> profile;    ///< rank 0's: of the model whose plan is wanted; nullopt: no certain one
};

/// Collective, over a transport of its own: links, roads and memory as `tune probe` measures them.
///
/// options  whose transport and network are probed
/// returns  on rank 0 the cluster; nothing elsewhere
/// throws   Error as make_transport() and probes::probe() do, on all ranks that can still be reached
std::optional<Cluster> probe_by_ranks(std::shared_ptr<Bootstrap> bootstrap, const TrainingOptions& options,
                                      const RankProbe& wanted);

struct PlannedTime {
  Plan plan;
  Seconds iteration{};  ///< predicted
};

/// The plan that tuner::tune() chooses for a program that waits so.
///
/// throws  what tuner::tune() does; Error{kBadInput} for fewer than 1 worker
PlannedTime plan_for(const Profile& profile, const Cluster& cluster, int workers, Barrier barrier);

}  // namespace commtune::api
