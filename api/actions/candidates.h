#pragma once
// Places where a job could run, compared.

#include <nlohmann/json_fwd.hpp>

#include "api/actions/context.h"
#include "api/question/question.h"

namespace commtune::api {

/// CandidateAnswers of api/openapi.yaml: answers the question for each of its candidates and keeps of each
/// answer what the question says. They share its time for planning. Throws what compare_candidates and
/// tune_job throw.
nlohmann::json candidates_job(Context& context, const Question& question);

}  // namespace commtune::api
