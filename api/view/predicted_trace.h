#pragma once
// The predicted iteration beside the measured ones: in a run's trace folder, for Perfetto.

#include <filesystem>

#include "perfmodel/cluster.h"
#include "perfmodel/plan.h"
#include "perfmodel/profile.h"

namespace commtune::api {

/// Writes `folder`/predicted.json: one predicted iteration that starts when the first one in
/// `folder`/all_ranks.json does; and adds it to all_ranks.json, as a process named "predicted".
/// throws  Error{kStorage} for what cannot be read or written; what road_cost() throws
void add_predicted_trace(const std::filesystem::path& folder, const Plan& plan, const Profile& profile,
                         const Cluster& cluster);

}  // namespace commtune::api
