#include "api/view/row_json.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "api/question/fitted.h"
#include "api/view/or_null.h"
#include "api/view/page_json.h"
#include "perfmodel/road_json.h"

namespace commtune::api {
namespace {

using nlohmann::json;

json with_origin(json object, const Origin& origin) {
  object["created"] = to_iso8601(origin.created);
  object["version"] = origin.version;
  return object;
}

json hosts_to_json(const std::vector<Host>& hosts) {
  json out = json::array();
  for (const Host& host : hosts) out.push_back({{"name", host.name}, {"slots", host.slots}});
  return out;
}

}  // namespace

json to_json(const ClusterRow& row) {
  return with_origin({{"id", row.id},
                      {"name", row.name},
                      {"transport", row.transport},
                      {"fingerprint", row.fingerprint},
                      {"facts", row.facts},
                      {"newest_facts", row.newest_facts},
                      {"hosts", hosts_to_json(row.hosts)},
                      {"seen", to_iso8601(row.seen)}},
                     row.origin);
}

json to_json(const SessionRow& row) {
  return with_origin({{"id", row.id},
                      {"cluster", row.cluster},
                      {"state", to_string(row.state)},
                      {"error", row.error},
                      {"ended", row.ended ? json(to_iso8601(*row.ended)) : json(nullptr)},
                      {"resumed", row.resumed},
                      {"samples", row.samples},
                      {"owner", row.owner},
                      {"settings", row.settings}},
                     row.origin);
}

json to_json(const SampleRow& row) {
  json out{{"id", row.id},
           {"session", row.session},
           {"at", to_iso8601(row.at)},
           {"kind", row.kind},
           {"operation", row.operation ? json(to_string(*row.operation)) : json(nullptr)},
           {"road", row.road ? commtune::to_json(*row.road) : json(nullptr)},
           {"workers", row.workers},
           {"servers", row.servers},
           {"source_rank", or_null(row.source_rank)},
           {"destination_rank", or_null(row.destination_rank)},
           {"in_flight", row.in_flight},
           {"size_bytes", row.bytes.count},
           {"median_seconds", row.median.count()},
           {"half_width_seconds", row.half_width.count()},
           {"repetitions", row.repetitions},
           {"raw_seconds", row.raw_seconds}};
  if (!row.detail.is_null()) out["detail"] = row.detail;
  return out;
}

json to_json(const FitSummary& row, const FitAge& age) {
  return with_origin({{"id", row.id},
                      {"session", row.session},
                      {"cluster", row.cluster},
                      {"cluster_name", row.cluster_name},
                      {"supersedes", or_null(row.supersedes)},
                      {"superseded_by", or_null(row.superseded_by)},
                      {"stale", is_stale(row, age)}},
                     row.origin);
}

json to_json(const FitRow& row, const FitAge& age) {
  json out = to_json(static_cast<const FitSummary&>(row), age);
  out["fit"] = commtune::to_json(row.snapshot);
  out["settings"] = row.settings;
  return out;
}

json to_json(const ProfileSummary& row) {
  return with_origin({{"id", row.id},
                      {"digest", row.digest},
                      {"layout", row.layout},
                      {"model", row.model},
                      {"batch", row.batch},
                      {"layers", row.layers},
                      {"tensors", row.tensors},
                      {"gradient_bytes", row.gradient_bytes.count},
                      {"compute_seconds", row.compute.count()},
                      {"how", row.how}},
                     row.origin);
}

json to_json(const ProfileRow& row) {
  json out = to_json(static_cast<const ProfileSummary&>(row));
  out["profile"] = commtune::to_json(row.profile);
  return out;
}

json to_json(const PlanSummary& row) {
  return with_origin({{"id", row.id},
                      {"digest", row.digest},
                      {"layout", row.layout},
                      {"method", row.method},
                      {"model", row.model},
                      {"road", row.road},
                      {"workers", row.workers},
                      {"messages", row.messages},
                      {"profile", row.profile},
                      {"fit", or_null(row.fit)},
                      {"cluster", or_null(row.cluster)},
                      {"cluster_name", row.cluster_name},
                      {"predicted_seconds", row.predicted.count()},
                      {"half_width_seconds", row.half_width.count()},
                      {"bound_seconds", row.bound.count()}},
                     row.origin);
}

json to_json(const PlanRow& row) {
  json out = to_json(static_cast<const PlanSummary&>(row));
  out["plan"] = commtune::to_json(row.plan);
  out["ranking"] = row.ranking;
  return out;
}

json to_json(const RunSummary& row) {
  return with_origin({{"id", row.id},
                      {"plan", row.plan},
                      {"cluster", or_null(row.cluster)},
                      {"cluster_name", row.cluster_name},
                      {"method", row.method},
                      {"model", row.model},
                      {"workers", row.workers},
                      {"state", to_string(row.state)},
                      {"attested", row.attested},
                      {"workload", row.workload},
                      {"iterations", row.iterations},
                      {"predicted_seconds", row.predicted.count()},
                      {"median_seconds", row.median.count()},
                      {"low_seconds", row.low.count()},
                      {"high_seconds", row.high.count()},
                      {"error", row.error},
                      {"trace_path", row.trace_path},
                      {"differences", row.differences},
                      {"ended", row.ended ? json(to_iso8601(*row.ended)) : json(nullptr)}},
                     row.origin);
}

json to_json(const RunRow& row) {
  json out = to_json(static_cast<const RunSummary&>(row));
  out["iteration_seconds"] = row.iteration_seconds;
  out["hosts"] = hosts_to_json(row.hosts);
  out["versions"] = row.versions;
  out["settings"] = row.settings;
  out["messages"] = row.messages;
  return out;
}

json cluster_to_json(const Store& store, const ClusterRow& cluster, const FitAge& age, const Page& probes) {
  json out = to_json(cluster);
  out["current_fit"] = json(nullptr);
  out["transports"] = json::array();
  for (const TransportFit& each : current_fits(store, cluster)) {
    json fit = to_json(*each.fit, age);
    put_marks(fit, {is_stale(*each.fit, age), each.differences});
    out["transports"].push_back({{"transport", each.fit->snapshot.transport},
                                 {"cluster", each.fit->cluster},
                                 {"fit", each.fit->id},
                                 {"stale", fit["stale"]}});
    if (out["current_fit"].is_null()) {
      out["current_fit"] = std::move(fit);
    } else {
      out["current_fit"]["fit"]["others"].push_back(std::move(fit["fit"]));
    }
  }
  out["probes"] = json::array();
  for (const SessionRow& probe : store.sessions(cluster.id, probes).rows)
    out["probes"].push_back(to_json(probe));
  return out;
}

json profiles_to_json(const std::vector<ProfileSummary>& shipped, const PageOf<ProfileSummary>& stored) {
  json out = page_to_json(stored, [](const ProfileSummary& row) { return to_json(row); });
  out["shipped"] = json::array();
  for (const ProfileSummary& row : shipped) out["shipped"].push_back(to_json(row));
  return out;
}

}  // namespace commtune::api
