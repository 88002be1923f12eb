#include "api/actions/whatif.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "api/view/whatif_json.h"
#include "perfmodel/base/error.h"

namespace commtune::api {
namespace {

constexpr std::size_t kMostCells = 4096;
constexpr int kRateSteps = 4;  // doublings either side of the measured rate

WhatIf about(const WhatIfCase& given) {
  const tuner::TuneOptions& options = given.options;
  const int workers = options.workers > 0
                          ? options.workers
                          : std::max(1, given.cluster.ranks() - options.limits.dedicated_servers);
  return {given.profile.model, given.name, given.profile.batch, workers, given.fit, given.marks};
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

WhatIfCase case_of(Context& context, const Question& job, std::string what) {
  Asked asked = look_up(context.store, job, fit_age(context.settings));
  std::string name = asked.made.cluster.name;
  return {std::move(asked.made.profile),
          std::move(asked.made.cluster),
          asked.made.options,
          std::move(name),
          asked.fit,
          watch(context, std::move(what)),
          std::move(asked.marks)};
}

tuner::ReferenceLink known_link(const Cluster& cluster) {
  if (const auto link = tuner::reference_link(cluster)) return *link;
  throw Error(ErrorCode::kNotFound,
              fmt::format("cluster \"{}\" has no fit of its links that a map could vary: probe it again",
                          cluster.name));
}

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
  nlohmann::json object{{"model", about.model},
                        {"cluster", about.cluster},
                        {"batch", about.batch},
                        {"fit", fit_to_json(about.fit)}};
  put_marks(object, about.marks);
  return object;
}

}  // namespace

ScaleOutcome scale(const WhatIfCase& given, const std::vector<int>& workers) {
  check_workers(workers);
  ScaleOutcome outcome;
  outcome.about = about(given);
  outcome.curves = tuner::scale(given.profile, given.cluster, workers, given.options, given.watch);
  outcome.compute = Seconds{Workload(given.profile).compute()};
  return outcome;
}

ScaleOutcome scale_job(Context& context, const ScaleRequest& request) {
  check_workers(request.workers);
  return scale(case_of(context, request.job, "scale"), request.workers);
}

ServersOutcome servers(const WhatIfCase& given, const std::vector<int>& servers, Placement placement) {
  if (servers.empty()) throw Error(ErrorCode::kBadInput, "servers: must name at least one number");
  ServersOutcome outcome;
  outcome.about = about(given);
  outcome.placement = placement;
  outcome.points =
      tuner::server_sweep(given.profile, given.cluster, servers, placement, given.options, given.watch);
  return outcome;
}

ServersOutcome servers_job(Context& context, const ServersRequest& request) {
  return servers(case_of(context, request.job, "servers"), request.servers, request.placement);
}

MapOutcome map(const WhatIfCase& given, const MapAxes& axes) {
  MapOutcome outcome;
  outcome.about = about(given);
  if (const auto link = tuner::reference_link(given.cluster)) {
    outcome.latency = link->latency;
    outcome.per_byte = link->per_byte;
  }
  outcome.workers = axes.workers;
  outcome.latency_factors = axes.latency_factors;
  outcome.per_byte_factors = axes.per_byte_factors;
  check_workers(outcome.workers);
  check_map(outcome);
  outcome.cells = tuner::phase_map(given.profile, given.cluster, outcome.workers, outcome.latency_factors,
                                   outcome.per_byte_factors, given.options, given.watch);
  return outcome;
}

MapOutcome map_job(Context& context, const MapRequest& request) {
  const WhatIfCase given = case_of(context, request.job, "map");
  const tuner::ReferenceLink link = known_link(given.cluster);
  MapAxes axes;
  axes.workers = request.workers.empty() ? std::vector<int>{about(given).workers} : request.workers;
  if (!request.latencies.empty()) axes.latency_factors.clear();
  for (const Seconds latency : request.latencies)
    axes.latency_factors.push_back(factor("latency", latency.count(), link.latency.count()));
  if (!request.per_byte.empty()) axes.per_byte_factors.clear();
  for (const SecondsPerByte per_byte : request.per_byte)
    axes.per_byte_factors.push_back(factor("bandwidth", per_byte.value, link.per_byte.value));
  return map(given, axes);
}

std::vector<SecondsPerByte> usual_rates(const Store& store, const ClusterChoice& choice) {
  const Fitted fitted = find_fitted(store, choice);
  const SecondsPerByte measured = known_link(*fitted.cluster).per_byte;
  std::vector<SecondsPerByte> list;
  for (int step = -kRateSteps; step <= kRateSteps; ++step)
    list.push_back({measured.value * std::exp2(-step)});
  return list;
}

nlohmann::json to_json(const ScaleOutcome& outcome) {
  nlohmann::json object = head(outcome.about);
  object["compute_seconds"] = outcome.compute.count();
  object["curves"] = to_json(outcome.curves);
  return object;
}

nlohmann::json to_json(const ServersOutcome& outcome) {
  nlohmann::json object = head(outcome.about);
  object["workers"] = outcome.about.workers;
  object["placement"] = to_string(outcome.placement);
  object["points"] = to_json(outcome.points);
  return object;
}

nlohmann::json to_json(const MapOutcome& outcome) {
  nlohmann::json object = head(outcome.about);
  object["measured_latency_seconds"] = outcome.latency.count();
  object["measured_seconds_per_byte"] = outcome.per_byte.value;
  object["workers"] = outcome.workers;
  object["latency_factors"] = outcome.latency_factors;
  object["time_per_byte_factors"] = outcome.per_byte_factors;
  object["cells"] = to_json(outcome.cells);
  return object;
}

}  // namespace commtune::api
