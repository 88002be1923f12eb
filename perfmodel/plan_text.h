#pragma once
// A plan as it is stored and sent.

#include <string>

#include "perfmodel/plan.h"

namespace commtune {

/// to_json(plan), written out in one line.
std::string json_text(const Plan& plan);

}  // namespace commtune
