#pragma once
// The doubtful fits that a stored plan's prediction rests on.

#include <vector>

#include "store/rows.h"
#include "store/store.h"
#include "tuner/tuner.h"

namespace commtune::api {

/// Told from the stored fit, so for plans of older versions, too. None where the plan belongs to no fit.
std::vector<tuner::DoubtfulFit> doubtful_fits_of(const Store& store, const PlanRow& plan);

/// PlanDetail of api/openapi.yaml: the row with them as "doubtful".
nlohmann::json to_json_with_doubt(const Store& store, const PlanRow& plan);

}  // namespace commtune::api
