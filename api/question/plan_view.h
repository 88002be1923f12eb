#pragma once
// A stored plan, or another one of its ranking, with what it was made for.

#include <functional>
#include <optional>
#include <string>

#include "perfmodel/cluster.h"
#include "perfmodel/plan.h"
#include "perfmodel/profile.h"
#include "perfmodel/simulate/simulate.h"
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

/// method  another one of the plan's ranking, "chosen", "best" or "worst"; empty: the plan itself
/// throws  what method_of throws; Error{kNotFound} where another method's plan was not stored and cannot be
///         made again; Error{kTimeout} where it was not before time was out
PlanView view_plan(const Store& store, const PlanRow& row, const std::string& method = {},
                   const tuner::OutOfTime& out_of_time = {});

/// How long iterations of other plans of the view's profile take on its cluster; nothing for a road that was
/// not measured there. Empty where the view is not priced.
std::function<std::optional<Seconds>(const Plan&)> prediction_beside(const PlanView& view);

struct PredictedIteration {
  Prediction prediction;
  Timeline timeline;
  Seconds bound{};  ///< of the plan's own road; 0 where it casts: the bound is one of lossless plans
};
/// One iteration of a plan. Throws what plan_cost throws.
PredictedIteration predicted_iteration(const Plan& plan, const Profile& profile, const Cluster& cluster);

}  // namespace commtune::api
