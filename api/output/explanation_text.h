#pragma once
// Why a plan takes as long as it does, in lines of plain text.

#include <string>

#include "perfmodel/plan.h"
#include "tuner/explain.h"

namespace commtune::api {

/// The timeline as a chart of `width` columns, the critical path and the improvements.
std::string to_text(const tuner::Explanation& explanation, const Plan& plan, int width = 72);

}  // namespace commtune::api
