#include "api/view/curves.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "api/view/row_json.h"
#include "api/view/sample_rows.h"
#include "perfmodel/base/normal.h"
#include "perfmodel/cost/prediction_limits.h"
#include "perfmodel/fit/curve.h"
#include "perfmodel/road_json.h"

namespace commtune::api {
namespace {

using nlohmann::json;

constexpr int kLinePoints = 64;

/// What one curve is about, and which samples it was made from.
struct CurveSubject {
  std::string name, setting;
  const Fit* fit = nullptr;
  std::optional<Operation> operation{};
  std::optional<Road> road{};
  int workers = 0;
  std::optional<LinkClass> link{};
  NcclTuning nccl{};
};

std::vector<CurveSubject> subjects_of(const Cluster& cluster) {
  std::vector<CurveSubject> subjects;
  const auto add = [&subjects](CurveSubject subject) {
    if (!subject.fit->curve.empty()) subjects.push_back(std::move(subject));
  };
  for (const auto& [kind, link] : cluster.links) {
    const std::string name = "link " + to_string(kind);
    add({name, "alone", &link.alone, {}, {}, 0, kind});
    add({name, "streamed", &link.streamed, {}, {}, 0, kind});
    add({name, "duplex", &link.duplex, {}, {}, 0, kind});
  }
  for (const OperationFit& fit : cluster.operations) {
    const std::string name = to_string(fit.operation);
    add({name, "alone", &fit.alone, fit.operation, fit.road, fit.workers, {}});
    add({name, "streamed", &fit.streamed, fit.operation, fit.road, fit.workers, {}});
  }
  const Road library = AllReduce{Collective::kLibrary};
  for (const NcclFit& fit : cluster.nccl) {
    if (fit.tuning.is_own_choice()) continue;  // the road's own curve is above
    const std::string name = to_string(fit.operation) + ", NCCL " + to_string(fit.tuning);
    add({name, "alone", &fit.alone, fit.operation, library, fit.workers, {}, fit.tuning});
  }
  return subjects;
}

json line_of(const Fit& fit) {
  json line = json::array();
  const double first = std::max<double>(1, static_cast<double>(fit.smallest.count));
  const double last = std::max(first, static_cast<double>(fit.largest.count));
  std::set<std::uint64_t> sizes;
  for (int i = 0; i < kLinePoints; ++i)
    sizes.insert(
        static_cast<std::uint64_t>(std::llround(first * std::pow(last / first, i / (kLinePoints - 1.0)))));
  // A jump between two pieces shows as one.
  for (const CurvePiece& piece : fit.curve.pieces())
    if (piece.from.count > sizes.size() && piece.from > fit.smallest && piece.from < fit.largest)
      sizes.insert({piece.from.count - 1, piece.from.count});
  for (const std::uint64_t size : sizes) {
    const double seconds = fit.curve(Bytes{size}).count();
    const double half = kNormal95 * standard_error(fit, Bytes{size}).count();
    line.push_back({{"size_bytes", size},
                    {"seconds", seconds},
                    {"low_seconds", std::max(0.0, seconds - half)},
                    {"high_seconds", seconds + half}});
  }
  return line;
}

json pieces_of(const Fit& fit) {
  json pieces = json::array();
  for (const CurvePiece& piece : fit.curve.pieces())
    pieces.push_back({{"from_bytes", piece.from.count},
                      {"alpha_seconds", piece.alpha.count()},
                      {"beta_seconds_per_byte", piece.beta.value}});
  return pieces;
}

/// Rank to host, in the order in which ranks fill them.
std::vector<std::string> rank_hosts_of(const std::vector<Host>& hosts) {
  std::vector<std::string> ranks;
  for (const Host& host : hosts)
    for (int slot = 0; slot < host.slots; ++slot) ranks.push_back(host.name);
  return ranks;
}

class SampleMatcher {
 public:
  SampleMatcher(const Store& store, RowId session, const std::vector<Host>& hosts)
      : rank_hosts_(rank_hosts_of(hosts)), samples_(store.all_samples(session)) {}

  std::vector<const SampleRow*> of(const CurveSubject& subject) const {
    std::vector<const SampleRow*> found;
    for (const SampleRow& row : samples_)
      if (belongs(row, subject)) found.push_back(&row);
    std::sort(found.begin(), found.end(),
              [](const SampleRow* a, const SampleRow* b) { return a->bytes < b->bytes; });
    return found;
  }

 private:
  bool belongs(const SampleRow& row, const CurveSubject& subject) const {
    const bool alone = subject.setting == "alone";
    if (subject.link) {
      if (row.kind != (subject.setting == "duplex" ? "exchange" : "message")) return false;
      if (subject.setting != "duplex" && (row.in_flight <= 1) != alone) return false;
      return link_of(row) == subject.link;
    }
    return row.kind == "operation" && row.operation == subject.operation && row.road == subject.road &&
           row.workers == subject.workers && (row.in_flight <= 1) == alone &&
           nccl_tuning_of(row) == subject.nccl;
  }

  std::optional<LinkClass> link_of(const SampleRow& row) const {
    const auto host = [this](const std::optional<int>& rank) -> const std::string* {
      return rank && *rank >= 0 && static_cast<std::size_t>(*rank) < rank_hosts_.size()
                 ? &rank_hosts_[static_cast<std::size_t>(*rank)]
                 : nullptr;
    };
    const std::string* const from = host(row.source_rank);
    const std::string* const to = host(row.destination_rank);
    if (from == nullptr || to == nullptr) return {};
    return *from == *to ? LinkClass::kIntraHost : LinkClass::kInterHost;
  }

  std::vector<std::string> rank_hosts_;
  std::vector<SampleRow> samples_;
};

double residual_ratio(const Fit& fit, const SampleRow& row) {
  const double fitted = fit.curve(row.bytes).count();
  return fitted > 0 ? row.median.count() / fitted - 1 : 0.0;
}

/// At most so many of them, in the order of their sizes: the first, the last, and of each group of neighbours
/// the fastest, the middle and the slowest against the fit, so that outliers stay to be seen.
std::vector<const SampleRow*> thinned(const Fit& fit, const std::vector<const SampleRow*>& samples,
                                      std::size_t most) {
  if (samples.size() <= most) return samples;
  std::vector<const SampleRow*> kept{samples.front()};
  const std::size_t groups = (most - 2) / 3, inner = samples.size() - 2;
  for (std::size_t group = 0; group < groups; ++group) {
    const auto at = [&](std::size_t end) {
      return samples.begin() + static_cast<std::ptrdiff_t>(1 + inner * end / groups);
    };
    std::vector<const SampleRow*> own(at(group), at(group + 1));
    std::sort(own.begin(), own.end(), [&fit](const SampleRow* a, const SampleRow* b) {
      return residual_ratio(fit, *a) < residual_ratio(fit, *b);
    });
    const auto place = kept.insert(kept.end(), {own.front(), own[own.size() / 2], own.back()});
    std::sort(place, kept.end(), [](const SampleRow* a, const SampleRow* b) { return a->bytes < b->bytes; });
  }
  kept.push_back(samples.back());
  return kept;
}

json points_of(const Fit& fit, const std::vector<const SampleRow*>& samples, std::size_t most) {
  json points = json::array();
  for (const SampleRow* row : thinned(fit, samples, most))
    points.push_back({{"size_bytes", row->bytes.count},
                      {"median_seconds", row->median.count()},
                      {"half_width_seconds", row->half_width.count()},
                      {"repetitions", row->repetitions},
                      {"fitted_seconds", fit.curve(row->bytes).count()},
                      {"residual_ratio", residual_ratio(fit, *row)}});
  return points;
}

json curve_of(const CurveSubject& subject, const std::vector<const SampleRow*>& samples, std::size_t most) {
  const FitQuality& quality = subject.fit->quality;
  return {{"subject", subject.name},
          {"setting", subject.setting},
          {"operation", subject.operation ? json(to_string(*subject.operation)) : json(nullptr)},
          {"road", subject.road ? commtune::to_json(*subject.road) : json(nullptr)},
          {"road_text", subject.road ? describe(*subject.road) : std::string{}},
          {"workers", subject.workers},
          {"smallest_bytes", subject.fit->smallest.count},
          {"largest_bytes", subject.fit->largest.count},
          {"quality",
           {{"samples", quality.samples},
            {"r_squared", quality.r_squared},
            {"median_relative", quality.median_relative},
            {"p90_relative", quality.p90_relative}}},
          {"deviation_ratio", subject.fit->deviation.largest()},
          {"pieces", pieces_of(*subject.fit)},
          {"line", line_of(*subject.fit)},
          {"points_total", samples.size()},
          {"points", points_of(*subject.fit, samples, most)}};
}

/// fit  the cluster's current one; without one nothing was measured
probes::LinkReport report_of(const Store& store, const ClusterRow& cluster,
                             const std::optional<FitRow>& fit) {
  std::vector<probes::ProbeSample> samples;
  if (fit)
    for (const SampleRow& row : store.all_samples(fit->session)) samples.push_back(from_row(row));
  return probes::analyse_links(samples, rank_hosts_of(cluster.hosts));
}

json scalar(const Scalar& value) { return {{"value", value.value}, {"half_width", value.half_width}}; }

/// What a cluster knows beside curves, by name.
json scalars_of(const Cluster& cluster) {
  json scalars{{"reduce_seconds_per_byte", scalar(cluster.reduce_seconds_per_byte)},
               {"copy_seconds_per_byte", scalar(cluster.copy_seconds_per_byte)},
               {"interference", scalar(cluster.interference)},
               {"contention", scalar(cluster.contention)},
               {"backlog_seconds", scalar(cluster.head_of_line_seconds)},
               {"connection_backlog_seconds", scalar(cluster.connection_head_of_line_seconds)},
               {"jitter_seconds", scalar(cluster.jitter_seconds)}};
  if (cluster.gpu.launch_seconds.value > 0) {
    scalars["launch_seconds"] = scalar(cluster.gpu.launch_seconds);
    scalars["upload_seconds_per_byte"] = scalar(cluster.gpu.upload_seconds_per_byte);
    scalars["download_seconds_per_byte"] = scalar(cluster.gpu.download_seconds_per_byte);
  }
  return scalars;
}

}  // namespace

json fit_curves_to_json(const Store& store, const FitRow& fit, const CurveRequest& request) {
  const Cluster& cluster = fit.snapshot;
  const SampleMatcher samples(store, fit.session, cluster.hosts);
  const auto most = static_cast<std::size_t>(request.points);
  bool down_sampled = false;
  json curves = json::array();
  for (const CurveSubject& subject : subjects_of(cluster)) {
    if (!request.subject.empty() && subject.name != request.subject) continue;
    const auto own = samples.of(subject);
    down_sampled = down_sampled || own.size() > most;
    curves.push_back(curve_of(subject, own, most));
  }
  json history = json::array();
  for (const FitSummary& row : store.fits(fit.cluster).rows) history.push_back(to_json(row, request.age));
  return {{"cluster", fit.cluster_name},
          {"fit", fit.id},
          {"session", fit.session},
          {"created", to_iso8601(fit.origin.created)},
          {"current", !fit.superseded_by.has_value()},
          {"stale", is_stale(fit, request.age)},
          {"history", std::move(history)},
          {"down_sampled", down_sampled},
          {"scalars", scalars_of(cluster)},
          {"curves", std::move(curves)}};
}

json links_to_json(const Store& store, const ClusterRow& cluster) {
  const auto fit = store.current_fit(cluster.id);
  json out = probes::to_json(report_of(store, cluster, fit));
  out["cluster"] = cluster.name;
  out["session"] = fit ? json(fit->session) : json(nullptr);
  for (json& link : out["links"]) {
    const double beta = link.at("beta_seconds_per_byte").get<double>();
    link["bandwidth_bytes_per_second"] = beta > 0 ? json(1 / beta) : json(nullptr);
  }
  return out;
}

probes::LinkReport link_report(const Store& store, const ClusterRow& cluster) {
  return report_of(store, cluster, store.current_fit(cluster.id));
}

}  // namespace commtune::api
