#include "api/output/rows.h"

#include <fmt/format.h>

#include <optional>

#include "api/output/report.h"
#include "api/output/table.h"
#include "api/view/sample_rows.h"

namespace commtune::api {
namespace {

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
  const probes::PlanCosts costs = from_row(row).costs;
  return fmt::format("streams: start-ups × {:.2f}, bytes × {:.2f}; alone: × {:.2f}, × {:.2f}",
                     costs.streamed.startup, costs.streamed.rate, costs.alone.startup, costs.alone.rate);
}
std::string ranks_text(const SampleRow& row) {
  if (row.source_rank && row.destination_rank)
    return fmt::format("{} -> {}", *row.source_rank, *row.destination_rank);
  if (row.source_rank) return std::to_string(*row.source_rank);
  return row.workers > 0 ? fmt::format("{} workers", row.workers) : "-";
}

}  // namespace

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
               batch_text(row.batch), std::to_string(row.layers), std::to_string(row.tensors),
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
               {"workload", Align::kLeft},
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
               std::to_string(row.workers), text_or_dash(row.cluster_name), text_or_dash(row.workload), state,
               std::to_string(row.iterations), time_or_dash(row.predicted), time_or_dash(row.median),
               judges ? signed_percent(row.predicted / row.median - 1) : "-", when(row.origin.created),
               text_or_dash(row.error)});
  }
  return table.text();
}

}  // namespace commtune::api
