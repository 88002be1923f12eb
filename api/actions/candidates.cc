#include "api/actions/candidates.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "api/actions/tune.h"
#include "api/question/candidates.h"
#include "api/view/outcome_json.h"

namespace commtune::api {

nlohmann::json candidates_job(Context& context, const Question& question) {
  const auto began = std::chrono::steady_clock::now();
  return compare_candidates(question,
                            [&](const CandidateAllocation& candidate, const ClusterChoice& cluster) {
                              Question own = question;
                              own.candidates.clear();
                              own.allocation = candidate.allocation;
                              own.cluster = cluster;
                              if (question.plan_time) {
                                const Seconds spent = std::chrono::steady_clock::now() - began;
                                own.plan_time = std::max(Seconds{0}, *question.plan_time - spent);
                              }
                              return answer_to_json(tune_job(context, own));
                            });
}

}  // namespace commtune::api
