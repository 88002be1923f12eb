#pragma once
// The methods of the literature as JSON: the service, `tune methods --json`.

#include <nlohmann/json_fwd.hpp>

namespace commtune::api {

/// {"methods": what each is, "where_best": the sweep of tuner/methods/where_best.h}
nlohmann::json methods_to_json();

}  // namespace commtune::api
