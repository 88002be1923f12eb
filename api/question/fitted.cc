#include "api/question/fitted.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "api/question/models.h"
#include "api/text.h"
#include "perfmodel/base/error.h"
#include "probes/analysis/fit_cluster.h"

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

[[noreturn]] void throw_not_probed(const Store& store, const std::string& cluster) {
  const std::vector<std::string> known = probed_clusters(store);
  throw Error(
      ErrorCode::kNotFound,
      fmt::format(
          "cluster \"{}\" has not been probed{}; {}probe it with: tune probe --cluster {} --hosts FILE",
          cluster, did_you_mean(cluster, known),
          known.empty() ? "" : fmt::format("probed are {}; ", fmt::join(known, ", ")), cluster));
}

/// Whether all that was known when a fit was made, and is known now, is as it was.
bool still_holds(const Cluster& snapshot, const ClusterRow& now) {
  return std::ranges::all_of(snapshot.facts, [&](const auto& fact) {
    const auto found = now.newest_facts.find(fact.first);
    return found == now.newest_facts.end() || found->second == fact.second ||
           !probes::enters_fingerprint(fact.first, fact.second);
  });
}

std::shared_ptr<const FitRow> from(const Store& store, RowId id) {
  auto fit = store.find_fit(id);
  return fit ? std::make_shared<const FitRow>(std::move(*fit)) : nullptr;
}

std::vector<TransportFit> current_fits(const Store& store, const std::string& cluster) {
  const auto row = store.find_cluster(std::string_view(cluster));
  return row ? api::current_fits(store, *row) : std::vector<TransportFit>{};
}

/// The cluster of several fits.
std::shared_ptr<const Cluster> one_cluster(std::span<const TransportFit> fits) {
  auto cluster = std::make_shared<Cluster>(fits.front().fit->snapshot);
  for (const TransportFit& other : fits.subspan(1)) cluster->others.push_back(other.fit->snapshot);
  return cluster;
}

}  // namespace

std::vector<TransportFit> current_fits(const Store& store, const ClusterRow& cluster, const LoadFit& load) {
  std::vector<TransportFit> fits;
  std::vector<ClusterRow> rows{cluster};
  std::ranges::move(store.over_other_transports(cluster), std::back_inserter(rows));
  for (const ClusterRow& row : rows) {
    const PageOf<FitSummary> newest = store.fits(row.id, Page{1, 0});
    if (newest.rows.empty()) continue;
    const RowId id = newest.rows.front().id;
    std::shared_ptr<const FitRow> fit = load ? load(id) : from(store, id);
    if (!fit || (row.id != cluster.id && !still_holds(fit->snapshot, cluster))) continue;
    std::vector<std::string> differences = stored_differences(fit->snapshot, row);
    fits.push_back({std::move(fit), std::move(differences)});
  }
  return fits;
}

Fitted joined(std::span<const TransportFit> fits, const std::string& transport, const FitAge& age) {
  if (!transport.empty()) {
    const auto only = std::ranges::find(
        fits, transport, [](const TransportFit& each) { return each.fit->snapshot.transport; });
    if (only == fits.end()) over_transport(*one_cluster(fits), transport);  // says what there is
    fits = std::span(&*only, 1);
  }
  Fitted fitted;
  const std::shared_ptr<const FitRow>& first = fits.front().fit;
  fitted.fit = first->id;
  fitted.cluster =
      fits.size() == 1 ? std::shared_ptr<const Cluster>(first, &first->snapshot) : one_cluster(fits);
  for (const TransportFit& each : fits) {
    if (fits.size() > 1) fitted.fits[each.fit->snapshot.transport] = each.fit->id;
    fitted.marks.stale = fitted.marks.stale || is_stale(*each.fit, age);
    for (const std::string& difference : each.differences) {
      if (std::ranges::find(fitted.marks.differences, difference) == fitted.marks.differences.end())
        fitted.marks.differences.push_back(difference);
    }
  }
  return fitted;
}

Fitted given_cluster(const Cluster& cluster, const std::string& transport) {
  auto given = std::make_shared<Cluster>(transport.empty() ? cluster : over_transport(cluster, transport));
  if (!transport.empty()) given->others.clear();
  return {std::move(given), std::nullopt};
}

bool is_probed(const Store& store, const std::string& cluster) {
  return !current_fits(store, cluster).empty();
}

Fitted find_fitted(const Store& store, const ClusterChoice& choice, const FitAge& age) {
  if (choice.given) return given_cluster(*choice.given, choice.transport);
  const std::vector<TransportFit> fits = current_fits(store, choice.name);
  if (fits.empty()) throw_not_probed(store, choice.name);
  return joined(fits, choice.transport, age);
}

Fitted find_fitted(const Store& store, const ClusterChoice& choice) {
  return find_fitted(store, choice, FitAge{Seconds{0}, {}});
}

std::optional<FitRow> fit_for_plan(const Store& store, const std::string& cluster, const Plan& plan) {
  for (const TransportFit& each : current_fits(store, cluster)) {
    if (plan.transport.empty() || plan.transport == each.fit->snapshot.transport) return *each.fit;
  }
  return std::nullopt;
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

std::string describe_fit(std::optional<RowId> fit, const FitIds& fits) {
  std::vector<std::string> each;
  each.reserve(fits.size());
  for (const auto& [transport, id] : fits) each.push_back(fmt::format("fit {} ({})", id, transport));
  if (!each.empty()) return fmt::format("{}", fmt::join(each, ", "));
  return fit ? fmt::format("fit {}", *fit) : "given by a file";
}

nlohmann::json fit_to_json(std::optional<RowId> fit) {
  return fit ? nlohmann::json(*fit) : nlohmann::json(nullptr);
}

}  // namespace commtune::api
