#pragma once
// The cluster that an answer rests on: one of the store as its newest fit has it, or one that a file gives.

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "api/question/question.h"
#include "perfmodel/cluster.h"
#include "store/rows.h"
#include "store/store.h"

namespace commtune::api {

struct Fitted {
  Cluster cluster;
  std::optional<RowId> fit;            ///< absent: a given cluster
  std::optional<FitSummary> row = {};  ///< that fit's
};

/// True when the store has a fit of this cluster as it is now.
bool is_probed(const Store& store, const std::string& cluster);

/// Throws Error{kNotFound} when the store has no fit of the named cluster, naming those that it has.
Fitted find_fitted(const Store& store, const ClusterChoice& choice);

/// Reads a commtune/cluster/1 document, or what `tune show clusters NAME --json` or `tune show fits ID
/// --json` prints, which has one inside. Throws Error{kNotFound} or Error{kBadInput} naming the file and the
/// place in it.
Cluster read_cluster_file(const std::filesystem::path& path);

/// "fit 12", or that the cluster was given.
std::string describe_fit(std::optional<RowId> fit);
/// 12, or null.
nlohmann::json fit_to_json(std::optional<RowId> fit);

}  // namespace commtune::api
