#include "api/actions/whatif.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "api/series.h"
#include "perfmodel/error.h"

namespace commtune::api {
namespace {

constexpr std::size_t kMostCells = 4096;
constexpr int kRateSteps = 4;  // doublings either side of the measured rate

WhatIf about(const TuneRequest& job, const Fitted& fitted) {
  const tuner::TuneOptions& options = job.options;
  const int workers = options.workers > 0
                          ? options.workers
                          : std::max(1, fitted.cluster.ranks() - options.limits.dedicated_servers);
  return {job.profile.model, fitted.cluster.name, job.profile.batch, workers, fitted.fit};
}

tuner::Watch watch(Context& context, std::string what) {
  return [&context, what = std::move(what)](double fraction) {
    if (context.cancellation.requested()) throw Error(ErrorCode::kInterrupted, what + ": interrupted");
    context.progress({what, fraction, {}});
  };
}

void check_workers(const std::vector<int>& workers) {
  if (workers.empty()) throw Error(ErrorCode::kBadInput, "workers: must name at least one number");
  for (const int n : workers)
    if (n < 1) throw Error(ErrorCode::kBadInput, fmt::format("workers = {}: must be at least 1", n));
  if (!std::is_sorted(workers.begin(), workers.end()) ||
      std::adjacent_find(workers.begin(), workers.end()) != workers.end())
    throw Error(ErrorCode::kBadInput, "workers: must grow from one to the next");
}

const LinkFit& reference_link(const Cluster& cluster) {
  for (const LinkClass kind : {LinkClass::kInterHost, LinkClass::kIntraHost}) {
    const auto found = cluster.links.find(kind);
    if (found != cluster.links.end() && !found->second.alone.curve.empty()) return found->second;
  }
  throw Error(ErrorCode::kNotFound,
              fmt::format("cluster \"{}\" has no fit of its links that a map could vary: probe it again",
                          cluster.name));
}

Seconds latency_of(const LinkFit& link) { return link.alone.curve.least_alpha(); }
SecondsPerByte per_byte_of(const LinkFit& link) { return link.alone.curve.pieces().back().beta; }

double factor(const char* what, double value, double measured) {
  const double by = value / measured;
  if (!(measured > 0) || !(by > 0) || !std::isfinite(by))
    throw Error(ErrorCode::kBadInput,
                fmt::format("{}: the measured link has {}, so no other can be reached by a factor", what,
                            measured > 0 ? "a positive one and the asked one is not" : "none"));
  return by;
}

void check_map(const MapOutcome& map) {
  const std::size_t cells = map.workers.size() * map.latency_factors.size() * map.per_byte_factors.size();
  if (cells > kMostCells)
    throw Error(ErrorCode::kBadInput, fmt::format("map of {} cells: must be at most {}", cells, kMostCells));
}

nlohmann::json head(const WhatIf& about) {
  return {{"model", about.model},
          {"cluster", about.cluster},
          {"batch", about.batch},
          {"fit", fit_to_json(about.fit)}};
}

}  // namespace

std::vector<int> count_series(std::string_view text) {
  return series<int>(text, parse_count, [](int n) { return n == 0 ? 1 : 2 * n; });
}

std::vector<SecondsPerByte> rate_series(std::string_view text) {
  // A rate that doubles halves the time per byte, so the ends are compared as rates.
  std::vector<SecondsPerByte> list;
  for (const double rate : series<double>(
           text, [](std::string_view word) { return 1 / parse_rate(word).value; },
           [](double rate) { return 2 * rate; }))
    list.push_back({1 / rate});
  return list;
}

std::vector<Seconds> duration_series(std::string_view text) {
  return series<Seconds>(text, parse_duration, [](Seconds time) { return 2 * time; });
}

ScaleOutcome scale_job(Context& context, const ScaleRequest& request) {
  check_workers(request.workers);
  const Fitted fitted = find_fitted(context.store, request.job.cluster);
  ScaleOutcome outcome;
  outcome.about = about(request.job, fitted);
  outcome.curves = tuner::scale(request.job.profile, fitted.cluster, request.workers, request.job.options,
                                watch(context, "scale"));
  outcome.compute = Seconds{Workload(request.job.profile).compute()};
  return outcome;
}

ServersOutcome servers_job(Context& context, const ServersRequest& request) {
  if (request.servers.empty()) throw Error(ErrorCode::kBadInput, "servers: must name at least one number");
  const Fitted fitted = find_fitted(context.store, request.job.cluster);
  ServersOutcome outcome;
  outcome.about = about(request.job, fitted);
  outcome.placement = request.placement;
  outcome.points = tuner::server_sweep(request.job.profile, fitted.cluster, request.servers,
                                       request.placement, request.job.options, watch(context, "servers"));
  return outcome;
}

MapOutcome map_job(Context& context, const MapRequest& request) {
  const Fitted fitted = find_fitted(context.store, request.job.cluster);
  const LinkFit& link = reference_link(fitted.cluster);
  MapOutcome outcome;
  outcome.about = about(request.job, fitted);
  outcome.latency = latency_of(link);
  outcome.per_byte = per_byte_of(link);
  outcome.workers = request.workers.empty() ? std::vector<int>{outcome.about.workers} : request.workers;
  check_workers(outcome.workers);
  for (const Seconds latency : request.latencies)
    outcome.latency_factors.push_back(factor("latency", latency.count(), outcome.latency.count()));
  for (const SecondsPerByte per_byte : request.per_byte)
    outcome.per_byte_factors.push_back(factor("bandwidth", per_byte.value, outcome.per_byte.value));
  if (outcome.latency_factors.empty()) outcome.latency_factors = {1};
  if (outcome.per_byte_factors.empty()) outcome.per_byte_factors = {1};
  check_map(outcome);
  outcome.cells =
      tuner::phase_map(request.job.profile, fitted.cluster, outcome.workers, outcome.latency_factors,
                       outcome.per_byte_factors, request.job.options, watch(context, "map"));
  return outcome;
}

std::vector<SecondsPerByte> usual_rates(const Store& store, const ClusterChoice& choice) {
  const Fitted fitted = find_fitted(store, choice);
  const SecondsPerByte measured = per_byte_of(reference_link(fitted.cluster));
  std::vector<SecondsPerByte> list;
  for (int step = -kRateSteps; step <= kRateSteps; ++step)
    list.push_back({measured.value * std::exp2(-step)});
  return list;
}

nlohmann::json to_json(const ScaleOutcome& outcome) {
  nlohmann::json json = head(outcome.about);
  json["compute_seconds"] = outcome.compute.count();
  json["curves"] = tuner::to_json(outcome.curves);
  return json;
}

nlohmann::json to_json(const ServersOutcome& outcome) {
  nlohmann::json json = head(outcome.about);
  json["workers"] = outcome.about.workers;
  json["placement"] = to_string(outcome.placement);
  json["points"] = tuner::to_json(outcome.points);
  return json;
}

nlohmann::json to_json(const MapOutcome& outcome) {
  nlohmann::json json = head(outcome.about);
  json["measured_latency_seconds"] = outcome.latency.count();
  json["measured_seconds_per_byte"] = outcome.per_byte.value;
  json["workers"] = outcome.workers;
  json["latency_factors"] = outcome.latency_factors;
  json["time_per_byte_factors"] = outcome.per_byte_factors;
  json["cells"] = tuner::to_json(outcome.cells);
  return json;
}

}  // namespace commtune::api
