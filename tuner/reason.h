#pragma once
// Why the chosen plan wins, in words.

#include <string>

#include "tuner/planning.h"
#include "tuner/tuner.h"

namespace commtune::tuner {

/// One sentence: what the chosen plan does differently from the best of the others, and what binds it. The
/// ranking must not be empty.
std::string reason_for(const Answer& answer, const Planning& job);

/// What was measured, how the chosen plan won by it, and what binds it. For an answer with `verified`.
std::string verified_reason(const Answer& answer);

}  // namespace commtune::tuner
