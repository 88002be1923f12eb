#pragma once
// Places where a job could run, compared: each candidate of a question is answered on its own.

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "api/question/question.h"
#include "perfmodel/base/error.h"

namespace commtune::api {

/// As the command line says one: its name, then what the flags of these names say of where a job runs, and
/// perhaps another cluster: "both nodes=n1,n2 devices-per-node=2 cluster=lab". Throws Error{kBadInput}.
CandidateAllocation candidate_from_text(const std::string& text);

/// UnknownAnswer of api/openapi.yaml: nothing measured supports an answer.
nlohmann::json unknown_answer(ErrorCode code, const std::string& reason);

/// Answers a question for one of its candidates: a PlanAnswer or an UnknownAnswer. Throws Error where it can
/// do neither.
using AnswerCandidate =
    std::function<nlohmann::json(const CandidateAllocation& candidate, const ClusterChoice& cluster)>;

/// CandidateAnswers of api/openapi.yaml: all answers, and the candidate with the most samples per second. One
/// that does not exist, has no usable fit or no time left, or is refused by `strict`, has no answer and says
/// why. Throws whatever else `answer` throws.
nlohmann::json compare_candidates(const Question& question, const AnswerCandidate& answer);

}  // namespace commtune::api
