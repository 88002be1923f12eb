#include "api/actions/explain.h"

#include <nlohmann/json.hpp>

#include "api/view/whatif_json.h"

namespace commtune::api {

Explained explain_job(const Context& context, const TuneOutcome& outcome, const std::string& method) {
  const Case& made = outcome.made;
  const tuner::Entry& entry = entry_of(outcome.answer, method);
  Explained explained{entry.title, entry.plan, tuner::explain(made.profile, made.cluster, entry.plan), {}};
  context.progress({"what would change the answer", 0, {}});
  if (outcome.answer.workers > 1)
    explained.flips = tuner::flip_points(made.profile, made.cluster, made.options);
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
