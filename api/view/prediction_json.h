#pragma once
// A predicted iteration as JSON, for rankings and time lines.

#include <nlohmann/json_fwd.hpp>

#include "perfmodel/simulate/simulate.h"

namespace commtune::api {

/// "measured", or "formula" where no probe ran the road so.
const char* basis_name(Basis basis);
nlohmann::json prediction_to_json(const Prediction& prediction);

}  // namespace commtune::api
