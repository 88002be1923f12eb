#include "api/actions/explain.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "api/text.h"
#include "api/view/whatif_json.h"
#include "perfmodel/error.h"

namespace commtune::api {

const tuner::Entry& entry_of(const tuner::Answer& answer, const std::string& method) {
  if (method.empty()) return answer.ranking.at(answer.chosen);
  std::vector<std::string> known;
  for (const tuner::Entry& entry : answer.ranking) {
    if (entry.method == method) return entry;
    known.push_back(entry.method);
  }
  throw Error(ErrorCode::kNotFound,
              fmt::format("--method {}: not in the ranking{}", method, did_you_mean(method, known)));
}

namespace {

/// What the outcome was made from, even if a newer fit has come since.
Cluster cluster_of(const Store& store, const TuneRequest& request, const TuneOutcome& outcome) {
  if (outcome.refitted) return *outcome.refitted;
  if (!outcome.fit) return find_fitted(store, request.cluster).cluster;
  if (auto fit = store.find_fit(*outcome.fit)) return std::move(fit->snapshot);
  throw Error(ErrorCode::kNotFound, fmt::format("fit {}: not in the database", *outcome.fit));
}

}  // namespace

Explained explain_job(Context& context, const TuneRequest& request, const TuneOutcome& outcome,
                      const std::string& method) {
  const Cluster cluster = cluster_of(context.store, request, outcome);
  const tuner::Entry& entry = entry_of(outcome.answer, method);
  Explained explained{
      entry.title, entry.plan, request.profile, tuner::explain(request.profile, cluster, entry.plan), {}};
  context.progress({"what would change the answer", 0, {}});
  if (outcome.answer.workers > 1)
    explained.flips = tuner::flip_points(request.profile, cluster, request.options);
  return explained;
}

nlohmann::json to_json(const Explained& explained) {
  const tuner::Explanation& e = explained.explanation;
  nlohmann::json path = nlohmann::json::array(), improvements = nlohmann::json::array();
  for (const tuner::CriticalStep& step : e.critical_path)
    path.push_back(
        {{"what", step.what}, {"from_seconds", step.from.count()}, {"until_seconds", step.until.count()}});
  for (const tuner::Improvement& improvement : e.improvements)
    improvements.push_back({{"what", improvement.what},
                            {"gain_seconds", improvement.gain.count()},
                            {"gain_ratio", improvement.gain / e.prediction.iteration}});
  return {{"method", explained.method},
          {"iteration_seconds", e.prediction.iteration.count()},
          {"communication_ratio", e.communication_ratio},
          {"worker_sends_bytes", e.worker_traffic.count},
          {"server_sends_bytes", e.server_traffic.count},
          {"critical_path", std::move(path)},
          {"improvements", std::move(improvements)},
          {"flip_points", to_json(explained.flips)}};
}

}  // namespace commtune::api
