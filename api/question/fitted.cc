#include "api/question/fitted.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "api/question/models.h"
#include "api/text.h"
#include "perfmodel/base/error.h"

namespace commtune::api {
namespace {

/// Where a document has the cluster: in itself, or under these keys.
struct Within {
  const nlohmann::json* cluster;
  std::string path;  ///< "" or "current_fit.fit."
};

Within find_cluster(const nlohmann::json& document, const std::filesystem::path& file) {
  Within found{&document, ""};
  for (const std::string_view key : {"current_fit", "fit"}) {
    if (!found.cluster->is_object() || found.cluster->contains("format")) break;
    const auto inner = found.cluster->find(key);
    if (inner == found.cluster->end()) continue;
    if (inner->is_null())
      throw Error(ErrorCode::kBadInput,
                  fmt::format("{}: {}{}: null: the cluster had not been probed when this was written",
                              file.string(), found.path, key));
    found = {&*inner, fmt::format("{}{}.", found.path, key)};
  }
  return found;
}

constexpr int kPageSize = 1000;

std::vector<std::string> probed_clusters(const Store& store) {
  std::set<std::string> names;
  for (const FitSummary& fit : store.fits({}, Page{kPageSize, 0}).rows) names.insert(fit.cluster_name);
  return {names.begin(), names.end()};
}

/// The fit that predictions for this cluster rest on.
FitRow fit_of(const Store& store, const std::string& cluster) {
  if (auto fit = store.current_fit(cluster)) return std::move(*fit);
  const std::vector<std::string> known = probed_clusters(store);
  throw Error(
      ErrorCode::kNotFound,
      fmt::format(
          "cluster \"{}\" has not been probed{}; {}probe it with: tune probe --cluster {} --hosts FILE",
          cluster, did_you_mean(cluster, known),
          known.empty() ? "" : fmt::format("probed are {}; ", fmt::join(known, ", ")), cluster));
}

}  // namespace

bool is_probed(const Store& store, const std::string& cluster) {
  return store.current_fit(cluster).has_value();
}

Fitted find_fitted(const Store& store, const ClusterChoice& choice) {
  if (choice.given) return {*choice.given, std::nullopt};
  FitRow fit = fit_of(store, choice.name);
  return {std::move(fit.snapshot), fit.id, static_cast<const FitSummary&>(fit)};
}

Cluster read_cluster_file(const std::filesystem::path& path) {
  const nlohmann::json document = read_json_file(path);
  const Within found = find_cluster(document, path);
  try {
    return cluster_from_json(*found.cluster);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}{}", path.string(), found.path, error.what()));
  }
}

std::string describe_fit(std::optional<RowId> fit) {
  return fit ? fmt::format("fit {}", *fit) : "given by a file";
}

nlohmann::json fit_to_json(std::optional<RowId> fit) {
  return fit ? nlohmann::json(*fit) : nlohmann::json(nullptr);
}

}  // namespace commtune::api
