#pragma once
// A stored plan, or another one of its ranking, with what it was made for.

#include <optional>
#include <string>

#include "perfmodel/cluster.h"
#include "perfmodel/plan.h"
#include "perfmodel/profile.h"
#include "store/rows.h"
#include "store/store.h"
#include "tuner/planning.h"

namespace commtune::api {

/// A plan with what it was made for.
struct PlanView {
  std::optional<RowId> id;  ///< absent: not stored, made again from the ranking's question
  Plan plan;
  Profile profile;
  Cluster cluster;  ///< as the question changed it; without fits when the plan has none
  bool priced = false;
};

/// The cluster that a plan's prediction rests on, as its fit or its file has it; nothing where it has
/// neither.
std::optional<Cluster> pricing_cluster(const Store& store, const PlanRow& row);

/// plan    a stored plan's id, at least 4 digits of its digest, or "latest"
/// method  another one of its ranking, "best" or "worst"; empty: the plan itself
/// throws  Error{kNotFound} naming what is missing; Error{kTimeout} when another method's plan had to be made
///         again and was not before time was out
PlanView find_plan_view(const Store& store, const std::string& plan, const std::string& method,
                        const tuner::OutOfTime& out_of_time = {});

}  // namespace commtune::api
