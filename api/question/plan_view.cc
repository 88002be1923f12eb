#include "api/question/plan_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/question/case.h"
#include "api/question/plan_lookup.h"
#include "perfmodel/base/error.h"
#include "perfmodel/bound/bound.h"
#include "perfmodel/cost/plan_cost.h"
#include "perfmodel/cost/topology.h"
#include "perfmodel/simulate/workload.h"
#include "tuner/tuner.h"

namespace commtune::api {
namespace {

using nlohmann::json;

/// What the ranking that a plan was chosen in was made from; null where that was not stored.
const json* question_of(const PlanRow& row) {
  if (!row.ranking.is_object()) return nullptr;
  const auto found = row.ranking.find("question");
  return found == row.ranking.end() ? nullptr : &*found;
}

/// Another method's plan of the same question, made again since it was not stored.
///
/// cluster  as it was fitted
Plan plan_again(const PlanRow& row, const Profile& profile, const Cluster& cluster, const std::string& method,
                const tuner::OutOfTime& out_of_time) {
  const json* const question = question_of(row);
  if (question == nullptr)
    throw Error(ErrorCode::kNotFound,
                fmt::format("method \"{}\": its plan was not stored with plan {}", method, row.id));
  Case made = case_from_record(*question, profile, cluster);
  made.options.out_of_time = out_of_time;
  const tuner::Answer answer = tuner::tune(profile, made.cluster, made.options);
  const auto found = std::ranges::find(answer.ranking, method, &tuner::Entry::method);
  if (found != answer.ranking.end()) return found->plan;
  if (!answer.complete)
    throw Error(ErrorCode::kTimeout,
                fmt::format("method \"{}\": the time limit passed before its plan was made", method));
  throw Error(ErrorCode::kNotFound, fmt::format("method \"{}\": not in the ranking", method));
}

/// The fits by transport that a ranking rests on; null where it rests on one.
const json* fits_of(const PlanRow& row) {
  if (!row.ranking.is_object()) return nullptr;
  const auto found = row.ranking.find("fits");
  return found == row.ranking.end() ? nullptr : &*found;
}

/// Adds what other transports' fits say, where the store still has them.
void add_others(const Store& store, const json& fits, Cluster& cluster) {
  for (const auto& [transport, id] : fits.items()) {
    if (transport == cluster.transport) continue;
    if (auto fit = store.find_fit(id.get<RowId>())) cluster.others.push_back(std::move(fit->snapshot));
  }
}

}  // namespace

std::optional<Cluster> pricing_cluster(const Store& store, const PlanRow& row) {
  std::optional<RowId> id = row.fit;
  if (const json* const question = question_of(row); !id && question != nullptr)
    if (const json& fit = question->at("fit"); !fit.is_null()) id = fit.get<RowId>();
  if (auto fit = id ? store.find_fit(*id) : std::nullopt) {
    if (const json* const fits = fits_of(row)) add_others(store, *fits, fit->snapshot);
    return std::move(fit->snapshot);
  }
  if (row.ranking.is_object() && row.ranking.contains("cluster"))
    return cluster_from_json(row.ranking.at("cluster"));
  return std::nullopt;
}

PlanView view_plan(const Store& store, const PlanRow& row, const std::string& method,
                   const tuner::OutOfTime& out_of_time) {
  PlanView view{row.id, row.plan, profile_of(store, row), {}, false};
  if (auto cluster = pricing_cluster(store, row)) {
    view.cluster = *std::move(cluster);
    view.priced = true;
  }
  if (!method.empty() && method != row.method && method != "chosen") {
    const RankedMethod found = method_of(row, method);
    view.id = found.plan;
    view.plan = found.plan ? plan_with_id(store, *found.plan).plan
                           : plan_again(row, view.profile, view.cluster, found.method, out_of_time);
  }
  if (const json* const question = question_of(row); view.priced && question != nullptr)
    view.cluster = case_from_record(*question, view.profile, view.cluster).cluster;
  return view;
}

std::function<std::optional<Seconds>(const Plan&)> prediction_beside(const PlanView& view) {
  if (!view.priced) return {};
  const JobSlowdown slowdown = slowdown_of(view.cluster, view.plan.workers);
  return [work = Workload(view.profile, slowdown), cluster = view.cluster](const Plan& plan) {
    std::optional<Seconds> time;
    try {
      time = simulate(work, plan, plan_cost(plan, cluster)).iteration;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kNotFound) throw;
    }
    return time;
  };
}

PredictedIteration predicted_iteration(const Plan& plan, const Profile& profile, const Cluster& cluster) {
  const Cluster& over = over_transport(cluster, plan.transport);
  const RoadCost cost = plan_cost(plan, over);
  const Workload work(profile, slowdown_of(over, plan.workers));
  PredictedIteration out;
  out.prediction = simulate(work, plan, cost, &out.timeline);
  if (plan.wire == WireFormat::kAsIs) out.bound = lower_bound(work, cost);
  return out;
}

}  // namespace commtune::api
