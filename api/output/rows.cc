#include "api/output/rows.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "api/actions/sample_rows.h"
#include "api/output/report.h"
#include "api/output/table.h"
#include "perfmodel/road_json.h"

namespace commtune::api {
namespace {

using nlohmann::json;

template <class Value>
json or_null(const std::optional<Value>& value) {
  return value ? json(*value) : json(nullptr);
}

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

std::string hosts_text(const std::vector<Host>& hosts) {
  std::string out;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (i == 4 && hosts.size() > 5) return out + fmt::format(" and {} more", hosts.size() - i);
    out += fmt::format("{}{}:{}", i > 0 ? " " : "", hosts[i].name, hosts[i].slots);
  }
  return out;
}

std::string id_or_dash(const std::optional<RowId>& id) { return id ? std::to_string(*id) : "-"; }
std::string text_or_dash(const std::string& text) { return text.empty() ? "-" : text; }
/// Of a plan what its run told of the costs.
std::string operation_text(const SampleRow& row) {
  if (row.operation) return to_string(*row.operation);
  if (row.kind != probes::to_string(probes::Subject::kPlan)) return "-";
  return fmt::format("costs × {:.2f}", from_row(row).costs.factor);
}
std::string ranks_text(const SampleRow& row) {
  if (row.source_rank && row.destination_rank)
    return fmt::format("{} -> {}", *row.source_rank, *row.destination_rank);
  if (row.source_rank) return std::to_string(*row.source_rank);
  return row.workers > 0 ? fmt::format("{} workers", row.workers) : "-";
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

std::string to_table(const std::vector<ClusterRow>& rows) {
  Table table({{"id"},
               {"cluster", Align::kLeft},
               {"transport", Align::kLeft},
               {"hosts", Align::kLeft},
               {"fingerprint", Align::kLeft},
               {"last seen", Align::kLeft}});
  for (const ClusterRow& row : rows)
    table.add({std::to_string(row.id), row.name, row.transport, hosts_text(row.hosts), row.fingerprint,
               when(row.seen)});
  return table.text();
}

std::string to_table(const std::vector<SessionRow>& rows) {
  Table table({{"id"},
               {"cluster"},
               {"state", Align::kLeft},
               {"samples"},
               {"started", Align::kLeft},
               {"ended", Align::kLeft},
               {"why", Align::kLeft}});
  for (const SessionRow& row : rows)
    table.add({std::to_string(row.id), std::to_string(row.cluster), to_string(row.state),
               std::to_string(row.samples), when(row.origin.created), row.ended ? when(*row.ended) : "-",
               text_or_dash(row.error)});
  return table.text();
}

std::string to_table(const std::vector<SampleRow>& rows) {
  Table table({{"id"},
               {"kind", Align::kLeft},
               {"operation", Align::kLeft},
               {"road", Align::kLeft},
               {"ranks", Align::kLeft},
               {"in flight"},
               {"size"},
               {"median"},
               {"95 %"},
               {"repetitions"}});
  for (const SampleRow& row : rows)
    table.add({std::to_string(row.id), row.kind, operation_text(row), row.road ? describe(*row.road) : "-",
               ranks_text(row), std::to_string(row.in_flight), format_size(row.bytes),
               format_time(row.median), "± " + format_time(row.half_width), std::to_string(row.repetitions)});
  return table.text();
}

std::string to_table(const std::vector<FitSummary>& rows, const FitAge& age) {
  Table table({{"id"},
               {"cluster", Align::kLeft},
               {"probe"},
               {"state", Align::kLeft},
               {"made", Align::kLeft},
               {"", Align::kLeft}});
  for (const FitSummary& row : rows)
    table.add({std::to_string(row.id), row.cluster_name, std::to_string(row.session),
               row.superseded_by ? fmt::format("superseded by {}", *row.superseded_by) : "current",
               when(row.origin.created), is_stale(row, age) ? "stale" : ""});
  return table.text();
}

std::string to_table(const std::vector<ProfileSummary>& rows) {
  Table table({{"id"},
               {"model", Align::kLeft},
               {"digest", Align::kLeft},
               {"layout", Align::kLeft},
               {"batch"},
               {"layers"},
               {"tensors"},
               {"gradients"},
               {"compute"},
               {"times", Align::kLeft}});
  for (const ProfileSummary& row : rows)
    table.add({row.id > 0 ? std::to_string(row.id) : "-", row.model, row.digest, text_or_dash(row.layout),
               std::to_string(row.batch), std::to_string(row.layers), std::to_string(row.tensors),
               format_size(row.gradient_bytes), format_time(row.compute), row.how});
  return table.text();
}

std::string to_table(const std::vector<PlanSummary>& rows) {
  Table table({{"id"},
               {"digest", Align::kLeft},
               {"method", Align::kLeft},
               {"model", Align::kLeft},
               {"road", Align::kLeft},
               {"workers"},
               {"messages"},
               {"predicted"},
               {"bound"},
               {"cluster", Align::kLeft},
               {"fit"},
               {"made", Align::kLeft}});
  for (const PlanSummary& row : rows)
    table.add({std::to_string(row.id), row.digest, row.method, row.model, row.road,
               std::to_string(row.workers), std::to_string(row.messages), time_or_dash(row.predicted),
               time_or_dash(row.bound), text_or_dash(row.cluster_name), id_or_dash(row.fit),
               when(row.origin.created)});
  return table.text();
}

std::string to_table(const std::vector<RunSummary>& rows) {
  Table table({{"id"},
               {"plan"},
               {"method", Align::kLeft},
               {"model", Align::kLeft},
               {"workers"},
               {"cluster", Align::kLeft},
               {"state", Align::kLeft},
               {"iterations"},
               {"predicted"},
               {"measured"},
               {"error"},
               {"started", Align::kLeft},
               {"why", Align::kLeft}});
  for (const RunSummary& row : rows) {
    const bool judges = row.attested && row.predicted.count() > 0 && row.median.count() > 0;
    std::string state = to_string(row.state);
    if (!row.attested) state += ", unattested";
    if (!row.differences.empty()) state += ", other conditions";
    table.add({std::to_string(row.id), std::to_string(row.plan), row.method, row.model,
               std::to_string(row.workers), text_or_dash(row.cluster_name),
               state, std::to_string(row.iterations), time_or_dash(row.predicted), time_or_dash(row.median),
               judges ? signed_percent(row.predicted / row.median - 1) : "-", when(row.origin.created),
               text_or_dash(row.error)});
  }
  return table.text();
}

}  // namespace commtune::api
