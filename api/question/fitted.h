#pragma once
// The cluster that an answer rests on: one of the store as its newest fit has it, or one that a file gives.

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/question/fit_marks.h"
#include "api/question/question.h"
#include "perfmodel/cluster.h"
#include "store/rows.h"
#include "store/store.h"

namespace commtune::api {

/// The fits that an answer rests on, by transport; empty where the cluster has one transport, or was given.
using FitIds = std::map<std::string, RowId>;

/// The current fit over one transport.
struct TransportFit {
  std::shared_ptr<const FitRow> fit;
  std::vector<std::string> differences;  ///< stored_differences
};

/// Reads a fit; null where there is none.
using LoadFit = std::function<std::shared_ptr<const FitRow>(RowId)>;

/// Of a cluster as it is now: over the transport that it was seen over last, if it has a fit over that, then
/// over the others. A fit over another transport counts where it was made on the same hosts, and no fact that
/// both know is another now.
///
/// load  empty: from the store
std::vector<TransportFit> current_fits(const Store& store, const ClusterRow& cluster,
                                       const LoadFit& load = {});

struct Fitted {
  std::shared_ptr<const Cluster> cluster;  ///< with the others, if it has several transports
  std::optional<RowId> fit;                ///< over the cluster's own transport; absent: a given cluster
  FitIds fits = {};
  FitMarks marks = {};  ///< of any of its fits
};
/// One cluster of these.
///
/// fits       at least one
/// transport  the only one that counts; empty: all. Throws Error{kNotFound} where it is not among them.
Fitted joined(std::span<const TransportFit> fits, const std::string& transport, const FitAge& age);
/// The same of a given cluster.
Fitted given_cluster(const Cluster& cluster, const std::string& transport);

/// True when the store has a fit of this cluster as it is now.
bool is_probed(const Store& store, const std::string& cluster);

/// Throws Error{kNotFound} when the store has no fit of the named cluster, naming those that it has, or none
/// over the transport that was chosen.
Fitted find_fitted(const Store& store, const ClusterChoice& choice, const FitAge& age);
/// For who asks nothing about how old the fits are.
Fitted find_fitted(const Store& store, const ClusterChoice& choice);

/// The current fit of this cluster that prices a plan: over the transport that the plan wants. Absent where
/// there is none.
std::optional<FitRow> fit_for_plan(const Store& store, const std::string& cluster, const Plan& plan);

/// Reads a commtune/cluster/1 document, or what `tune show clusters NAME --json` or `tune show fits ID
/// --json` prints, which has one inside. Throws Error{kNotFound} or Error{kBadInput} naming the file and the
/// place in it.
Cluster read_cluster_file(const std::filesystem::path& path);

/// "fit 12", "fit 12 (mpi), fit 13 (tcp)", or that the cluster was given.
std::string describe_fit(std::optional<RowId> fit, const FitIds& fits = {});
/// 12, or null.
nlohmann::json fit_to_json(std::optional<RowId> fit);

}  // namespace commtune::api
