#include "api/view/doubtful.h"

#include <nlohmann/json.hpp>

#include "api/question/plan_view.h"
#include "api/view/answer_json.h"
#include "api/view/row_json.h"
#include "tuner/doubtful.h"

namespace commtune::api {

std::vector<tuner::DoubtfulFit> doubtful_fits_of(const Store& store, const PlanRow& plan) {
  const std::optional<Cluster> cluster = pricing_cluster(store, plan);
  if (!cluster) return {};
  tuner::Entry entry;
  entry.method = plan.method;
  entry.plan = plan.plan;
  return tuner::doubtful_fits_behind({entry}, *cluster, plan.workers);
}

nlohmann::json to_json_with_doubt(const Store& store, const PlanRow& plan) {
  nlohmann::json out = to_json(plan);
  out["doubtful"] = nlohmann::json::array();
  for (const tuner::DoubtfulFit& fit : doubtful_fits_of(store, plan)) out["doubtful"].push_back(to_json(fit));
  return out;
}

}  // namespace commtune::api
