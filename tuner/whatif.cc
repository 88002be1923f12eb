#include "tuner/whatif.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>

#include "perfmodel/base/error.h"
#include "perfmodel/cost/topology.h"
#include "perfmodel/fit/curve_ops.h"
#include "tuner/doubt.h"
#include "tuner/methods/method.h"

namespace commtune::tuner {

namespace {

/// Factors of a change that are looked at: up to six doublings, and then how near to the flip. Nearer ones
/// and farther ones take one more answer for each halving or doubling.
constexpr double kFarthest = 64;
constexpr double kClose = 1.05;

/// Counts points for a Watch.
class Ticks {
 public:
  Ticks(const Watch& watch, std::size_t points) : watch_(watch), points_(points) {}
  void next() {
    if (watch_) watch_(static_cast<double>(done_) / static_cast<double>(points_));
    ++done_;
  }

 private:
  const Watch& watch_;
  std::size_t points_, done_ = 0;
};

void stretch(Fit& fit, double latency_factor, double time_per_byte_factor) {
  if (!fit.curve.empty()) fit.curve = recalibrated(fit.curve, latency_factor, time_per_byte_factor);
}

TuneOptions for_workers(const TuneOptions& options, int workers) {
  TuneOptions changed = options;
  changed.workers = workers;
  return changed;
}

bool is_published(const Entry& entry) { return find_method(entry.method) != nullptr; }

const Entry& fastest_published(const Answer& answer) {
  return *std::find_if(answer.ranking.begin(), answer.ranking.end(), is_published);
}

ScalePoint point_of(const Entry& entry, int workers) {
  ScalePoint point;
  point.workers = workers;
  point.iteration = entry.prediction.iteration;
  point.low = entry.doubt ? entry.doubt->low : point.iteration;
  point.high = entry.doubt ? entry.doubt->high : point.iteration;
  point.samples_per_second = entry.samples_per_second;
  point.speedup = entry.speedup;
  point.efficiency = entry.speedup / workers;
  point.basis = entry.prediction.basis;
  point.extrapolated = entry.prediction.extrapolated;
  point.road = entry.plan.road;
  return point;
}

int workers_now(const Cluster& cluster, const TuneOptions& options) {
  return options.workers > 0 ? options.workers : cluster.ranks() - options.limits.dedicated_servers;
}

std::vector<Road> all_reduce_roads(const Cluster& cluster, const TuneOptions& options) {
  std::vector<Road> roads = roads_for(cluster, options.workers, options.limits);
  std::erase_if(roads, [](const Road& road) { return !std::holds_alternative<AllReduce>(road); });
  return roads;
}

std::vector<Road> server_roads(const Cluster& cluster, const TuneOptions& options, int count,
                               Placement placement) {
  ParameterServer servers{count, placement};
  if (placement == Placement::kColocated)
    servers.first = first_server(spared_workers(topology_of(cluster, options.workers)), count);
  std::vector<Road> roads{servers};
  if (may_sum_locally(topology_of(cluster, options.workers))) {
    servers.local_sum = LocalSum::kFirst;
    roads.emplace_back(servers);
  }
  return roads;
}

/// The fastest method of the literature, with its road.
struct Winner {
  std::string method, name;  ///< "mg-wfbp", "MG-WFBP on all-to-all ring"
  TransportRoad on;
  Seconds iteration{};
};

Winner winner(const Profile& profile, const Cluster& cluster, const TuneOptions& options) {
  const Answer answer = tune(profile, cluster, options);
  const Entry& best = fastest_published(answer);
  return {best.method, best.title + " on " + describe(best.plan.road), road_of(best.plan),
          best.prediction.iteration};
}

/// What a winner of another question would take here; nothing where its road does not exist.
std::optional<Seconds> time_of(const Winner& winner, const Profile& profile, const Cluster& cluster,
                               const TuneOptions& options) {
  try {
    Planning job(profile, over_transport(cluster, winner.on.transport), options.workers, {winner.on.road});
    job.barrier = options.barrier;
    const RoadOption& option = job.roads.front();
    const Plan plan = job.with_barrier(find_method(winner.method)->build(job, option));
    return simulate(job.work, plan, option.cost).iteration;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kBadInput && error.code() != ErrorCode::kNotFound) throw;
    return std::nullopt;
  }
}

/// Who wins in place of `before`, by more than what cannot be told apart; nothing where nobody does.
std::optional<std::string> successor(const Winner& before, const Profile& profile, const Cluster& cluster,
                                     const TuneOptions& options) {
  const Winner now = winner(profile, cluster, options);
  if (now.name == before.name) return std::nullopt;
  const std::optional<Seconds> stays = time_of(before, profile, cluster, options);
  if (stays && *stays <= now.iteration * (1 + kIndifferent)) return std::nullopt;
  return now.name;
}

using SuccessorAt = std::function<std::optional<std::string>(double factor)>;

/// The smallest factor above 1 at which somebody succeeds.
std::optional<std::pair<double, std::string>> first_change(const SuccessorAt& successor_at) {
  double low = 1, high = 1;
  std::optional<std::string> after;
  while (high < kFarthest && !after) {
    low = high;
    high *= 2;
    after = successor_at(high);
  }
  if (!after) return std::nullopt;
  while (high / low > kClose) {
    const double middle = std::sqrt(low * high);
    if (const std::optional<std::string> there = successor_at(middle)) {
      high = middle;
      after = there;
    } else {
      low = middle;
    }
  }
  return std::pair{high, *after};
}

}  // namespace

Cluster with_network(const Cluster& cluster, double latency_factor, double time_per_byte_factor) {
  if (!(latency_factor > 0 && time_per_byte_factor > 0)) {
    throw Error(ErrorCode::kBadInput, "network factors must be positive");
  }
  Cluster changed = cluster;
  for (Cluster& other : changed.others) other = with_network(other, latency_factor, time_per_byte_factor);
  for (auto& [kind, link] : changed.links) {
    for (Fit* fit : {&link.alone, &link.streamed, &link.duplex})
      stretch(*fit, latency_factor, time_per_byte_factor);
  }
  for (OperationFit& operation : changed.operations) {
    for (Fit* fit : {&operation.alone, &operation.streamed})
      stretch(*fit, latency_factor, time_per_byte_factor);
  }
  return changed;
}

std::optional<ReferenceLink> reference_link(const Cluster& cluster) {
  for (const LinkClass kind : {LinkClass::kInterHost, LinkClass::kIntraHost}) {
    const auto found = cluster.links.find(kind);
    if (found == cluster.links.end() || found->second.alone.curve.empty()) continue;
    const Fit& fit = found->second.alone;
    SecondsPerByte per_byte = fit.curve.pieces().back().beta;
    if (!(per_byte.value > 0) && fit.largest.count > 0) {
      per_byte.value = fit.curve(fit.largest).count() / static_cast<double>(fit.largest.count);
    }
    return ReferenceLink{fit.curve.least_alpha(), per_byte};
  }
  return std::nullopt;
}

std::vector<ScaleCurve> scale(const Profile& profile, const Cluster& cluster, const std::vector<int>& workers,
                              const TuneOptions& options, const Watch& watch) {
  std::vector<ScaleCurve> curves;
  Ticks ticks(watch, workers.size());
  for (auto n = workers.rbegin(); n != workers.rend(); ++n) {
    ticks.next();
    const Answer answer = tune(profile, cluster, for_workers(options, *n));
    for (const Entry& entry : answer.ranking) {
      auto curve = std::find_if(curves.begin(), curves.end(),
                                [&](const ScaleCurve& c) { return c.method == entry.method; });
      if (curve == curves.end()) curve = curves.insert(curves.end(), {entry.method, entry.title, {}});
      curve->points.insert(curve->points.begin(), point_of(entry, *n));
    }
  }
  return curves;
}

std::vector<ServerPoint> server_sweep(const Profile& profile, const Cluster& cluster,
                                      const std::vector<int>& servers, Placement placement,
                                      const TuneOptions& options, const Watch& watch) {
  TuneOptions one = for_workers(options, workers_now(cluster, options));
  one.draws = 0;
  std::vector<ServerPoint> points;
  Ticks ticks(watch, servers.size());
  for (const int count : servers) {
    ticks.next();
    one.roads = count == 0 ? all_reduce_roads(cluster, one) : server_roads(cluster, one, count, placement);
    const Answer answer = tune(profile, cluster, one);
    const Entry& best = answer.ranking.front();
    ServerPoint point{count, best.title, best.plan.road, best.prediction.iteration, best.samples_per_second};
    if (!points.empty()) point.marginal_gain = 1 - point.iteration / points.back().iteration;
    points.push_back(std::move(point));
  }
  return points;
}

std::vector<PhaseCell> phase_map(const Profile& profile, const Cluster& cluster,
                                 const std::vector<int>& workers, const std::vector<double>& latency_factors,
                                 const std::vector<double>& time_per_byte_factors, const TuneOptions& options,
                                 const Watch& watch) {
  std::vector<PhaseCell> cells;
  Ticks ticks(watch, workers.size() * latency_factors.size() * time_per_byte_factors.size());
  for (const int n : workers) {
    TuneOptions changed = for_workers(options, n);
    changed.draws = 0;
    for (const double latency : latency_factors) {
      for (const double per_byte : time_per_byte_factors) {
        ticks.next();
        const Answer answer = tune(profile, with_network(cluster, latency, per_byte), changed);
        const Entry& best = answer.ranking.front();
        const Entry& literature = fastest_published(answer);
        cells.push_back(
            {n, latency, per_byte, literature.title, describe(best.plan.road), best.prediction.iteration,
             literature.prediction.iteration / best.prediction.iteration, best.prediction.binding});
      }
    }
  }
  return cells;
}

std::vector<Flip> flip_points(const Profile& profile, const Cluster& cluster, const TuneOptions& options,
                              const Watch& watch) {
  const int now = workers_now(cluster, options);
  TuneOptions plain = for_workers(options, now);
  plain.draws = 0;
  const Winner before = winner(profile, cluster, plain);
  const int servers_now = plain.limits.dedicated_servers;
  const auto workers_at = [&](double by) { return static_cast<int>(std::lround(by * now)); };
  // With none, the first doubling is the first server.
  const auto servers_at = [&](double by) {
    return static_cast<int>(std::lround(servers_now > 0 ? by * servers_now : by / 2));
  };
  struct Direction {
    std::string change;
    std::function<std::string(double)> text;
    SuccessorAt successor_at;
  };
  const std::vector<Direction> directions = {
      {"network", [](double by) { return fmt::format("the network is {:.3g} times slower", by); },
       [&](double by) { return successor(before, profile, with_network(cluster, by, by), plain); }},
      {"device", [](double by) { return fmt::format("the device is {:.3g} times faster", by); },
       [&](double by) { return successor(before, scaled(profile, 1, 1 / by), cluster, plain); }},
      {"workers", [&](double by) { return fmt::format("there are {} workers", workers_at(by)); },
       [&](double by) { return successor(before, profile, cluster, for_workers(plain, workers_at(by))); }},
      {"servers",
       [&](double by) {
         const int count = servers_at(by);
         return fmt::format("there {} {} dedicated server{}", count == 1 ? "is" : "are", count,
                            count == 1 ? "" : "s");
       },
       [&](double by) {
         TuneOptions changed = plain;
         changed.limits.dedicated_servers = servers_at(by);
         return successor(before, profile, cluster, changed);
       }},
  };
  std::vector<Flip> flips;
  double done = 0;
  for (const Direction& direction : directions) {
    const auto change = first_change([&](double by) {
      if (watch) watch(done);
      return direction.successor_at(by);
    });
    done += 1 / static_cast<double>(directions.size());
    if (!change) continue;
    const auto& [factor, after] = *change;
    flips.push_back({direction.change, factor, before.name, after,
                     fmt::format("{} wins once {}.", after, direction.text(factor))});
  }
  return flips;
}

}  // namespace commtune::tuner
