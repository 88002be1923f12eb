#pragma once
// Rows of the store as JSON: the service, `--json`.

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "api/question/fit_marks.h"
#include "store/rows.h"
#include "store/store.h"

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

/// A cluster with its current fit, what is to be known of that, and a page of its probes, newest first.
nlohmann::json cluster_to_json(const Store& store, const ClusterRow& cluster, const FitAge& age,
                               const Page& probes);
/// Profiles that can be used without having been stored, and a page of those that are.
nlohmann::json profiles_to_json(const std::vector<ProfileSummary>& shipped,
                                const PageOf<ProfileSummary>& stored);

}  // namespace commtune::api
