#pragma once
// The answer to a question, in the words that a scheduler needs: PlanAnswer of api/openapi.yaml.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "api/actions/tune.h"
#include "api/question/case.h"
#include "tuner/whatif.h"

namespace commtune::api {

/// "The largest number of workers up to which adding them still pays."
struct Recommendation {
  int workers = 0;
  std::string reason;
};

/// Doublings up to `most`: the largest number of workers at which the best method's speed-up over one worker
/// is at least `least_efficiency` times that number. Draws nothing; some ten answers' work, between which
/// `watch` may end it.
Recommendation recommend_workers(const Case& made, int most, double least_efficiency,
                                 const tuner::Watch& watch = {});

struct Given {
  TuneOutcome outcome;
  Question question;
  Case made;
  std::optional<Recommendation> recommended;
};

/// What is exported into the job: our own names, and those of frameworks that read theirs from the
/// environment. plan_id 0: the plan is not stored.
nlohmann::json environment_of(const Plan& plan, const Profile& profile, RowId plan_id, Seconds iteration);

/// PlanAnswer.
nlohmann::json answer_to_json(Given given);

}  // namespace commtune::api
