#include "api/question/fitted.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "api/actions/tune.h"
#include "api/question/models.h"
#include "perfmodel/error.h"

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

}  // namespace

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
