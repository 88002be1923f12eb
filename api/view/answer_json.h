#pragma once
// An answer of the tuner as JSON: REST, `--json`, and what the store keeps of a ranking. Seconds and bytes
// are bare numbers whose names carry the unit.

#include <nlohmann/json_fwd.hpp>

#include "tuner/tuner.h"

namespace commtune::api {

/// "fit", what it misses its samples by, "methods".
nlohmann::json to_json(const tuner::DoubtfulFit& fit);
nlohmann::json to_json(const tuner::Answer& answer);
/// Without "plan", the largest member, for whoever writes it by itself (perfmodel/plan_text.h).
nlohmann::json to_json_but_plan(const tuner::Answer& answer);

}  // namespace commtune::api
