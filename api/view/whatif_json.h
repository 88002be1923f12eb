#pragma once
// Curves, sweeps and maps of the tuner as JSON: REST and `--json`.

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "tuner/whatif.h"

namespace commtune::api {

nlohmann::json to_json(const std::vector<tuner::ScaleCurve>& curves);
nlohmann::json to_json(const std::vector<tuner::ServerPoint>& points);
nlohmann::json to_json(const std::vector<tuner::PhaseCell>& cells);
nlohmann::json to_json(const std::vector<tuner::Flip>& flips);

}  // namespace commtune::api
