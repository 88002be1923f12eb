#pragma once
// The cluster that an answer rests on: one of the store as its newest fit has it, or one that a file gives.

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "perfmodel/cluster.h"
#include "store/rows.h"
#include "store/store.h"

namespace commtune::api {

/// Which cluster is meant.
struct ClusterChoice {
  std::string name;              ///< its current fit in the store
  std::optional<Cluster> given;  ///< in place of that: measured elsewhere, or made up
};

struct Fitted {
  Cluster cluster;
  std::optional<RowId> fit;            ///< absent: a given cluster
  std::optional<FitSummary> row = {};  ///< that fit's
};

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
