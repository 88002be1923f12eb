#pragma once
// Rows of the store as JSON: the service, `--json`.

#include <nlohmann/json_fwd.hpp>

#include "api/question/fit_marks.h"
#include "store/rows.h"

namespace commtune::api {

nlohmann::json to_json(const ClusterRow& row);
nlohmann::json to_json(const SessionRow& row);
nlohmann::json to_json(const SampleRow& row);
nlohmann::json to_json(const FitSummary& row, const FitAge& age);
nlohmann::json to_json(const FitRow& row, const FitAge& age);
nlohmann::json to_json(const ProfileSummary& row);
nlohmann::json to_json(const ProfileRow& row);
nlohmann::json to_json(const PlanSummary& row);
nlohmann::json to_json(const PlanRow& row);
nlohmann::json to_json(const RunSummary& row);
nlohmann::json to_json(const RunRow& row);

}  // namespace commtune::api
