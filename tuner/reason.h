#pragma once
// Why the chosen plan wins, in words.

#include <string>

#include "tuner/planning.h"
#include "tuner/tuner.h"

namespace commtune::tuner {

/// One sentence: what the chosen plan does differently from the best of the others, and what binds it. The
/// ranking must not be empty.
std::string reason_for(const Answer& answer, const Planning& job);

}  // namespace commtune::tuner
