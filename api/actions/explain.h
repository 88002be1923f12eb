#pragma once
// Why a plan takes as long as it does, and what would change the answer. Nothing is stored.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "api/actions/context.h"
#include "api/question/answer.h"
#include "tuner/explain.h"
#include "tuner/whatif.h"

namespace commtune::api {

struct Explained {
  std::string method;
  Plan plan;
  tuner::Explanation explanation;
  std::vector<tuner::Flip> flips;  ///< what would make another method of the literature, or road, the best
};

/// The chosen plan of an answer, or the named method's, on the fit that the answer rests on. Throws
/// Error{kNotFound} for a method that is not in the ranking.
Explained explain_job(const Context& context, const TuneOutcome& outcome, const std::string& method = {});

/// Critical path, improvements, traffic and flip points; not the timeline, which is the trace's.
nlohmann::json to_json(const Explained& explained);

}  // namespace commtune::api
