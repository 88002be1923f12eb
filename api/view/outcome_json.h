#pragma once
// The answer to a question as JSON: as the command line prints it, and in the words that a scheduler needs.

#include <nlohmann/json.hpp>

#include "api/question/answer.h"

namespace commtune::api {

/// What is exported into the job: our own names, and those of frameworks that read theirs from the
/// environment. plan_id 0: the plan is not stored.
nlohmann::json environment_of(const Plan& plan, const Profile& profile, RowId plan_id, Seconds iteration);

/// `tune plan --json`: to_json of the answer, with "id" (of the chosen plan), "fit", "profile", "plans"
/// (method -> id), where it was verified "runs" (method -> ids), where it was explained "explanation", and
/// what the question assumed and asked for beside it.
nlohmann::json to_json(const TuneOutcome& outcome);

/// PlanAnswer of api/openapi.yaml.
nlohmann::json answer_to_json(TuneOutcome given);

}  // namespace commtune::api
