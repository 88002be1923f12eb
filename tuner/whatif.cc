#include "tuner/whatif.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "perfmodel/curve_ops.h"
#include "perfmodel/error.h"

namespace commtune::tuner {

namespace {

constexpr double kFarthest = 64;
constexpr double kClose = 1.05;

void stretch(Fit& fit, double latency_factor, double time_per_byte_factor) {
  if (!fit.curve.empty()) fit.curve = recalibrated(fit.curve, latency_factor, time_per_byte_factor);
}

TuneOptions for_workers(const TuneOptions& options, int workers) {
  TuneOptions changed = options;
  changed.workers = workers;
  changed.measure = nullptr;
  changed.verify = 0;
  return changed;
}

bool published(const Entry& entry) { return entry.method != "joint" && entry.method != "exact-fusion"; }

const Entry& fastest_published(const Answer& answer) {
  return *std::find_if(answer.ranking.begin(), answer.ranking.end(), published);
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
  return point;
}

int workers_now(const Cluster& cluster, const TuneOptions& options) {
  return options.workers > 0 ? options.workers : cluster.ranks() - options.limits.dedicated_servers;
}

std::string winner(const Profile& profile, const Cluster& cluster, const TuneOptions& options) {
  const Answer answer = tune(profile, cluster, options);
  const Entry& best = fastest_published(answer);
  return best.title + " on " + describe(best.plan.road);
}

/// The smallest factor above 1 at which `winner_at` says something else than `before`.
std::optional<std::pair<double, std::string>> first_change(
    const std::string& before, const std::function<std::string(double)>& winner_at) {
  double low = 1, high = 1;
  std::string after;
  while (high < kFarthest && (after.empty() || after == before)) {
    low = high;
    high *= 2;
    after = winner_at(high);
  }
  if (after == before) return std::nullopt;
  while (high / low > kClose) {
    const double middle = std::sqrt(low * high);
    const std::string there = winner_at(middle);
    if (there == before) {
      low = middle;
    } else {
      high = middle;
      after = there;
    }
  }
  return std::pair{high, after};
}

}  // namespace

Cluster with_network(const Cluster& cluster, double latency_factor, double time_per_byte_factor) {
  if (!(latency_factor > 0 && time_per_byte_factor > 0)) {
    throw Error(ErrorCode::kBadInput, "network factors must be positive");
  }
  Cluster changed = cluster;
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

std::vector<int> doublings(int most) {
  std::vector<int> list;
  for (int n = 1; n < most; n *= 2) list.push_back(n);
  if (most >= 1) list.push_back(most);
  return list;
}

std::vector<ScaleCurve> scale(const Profile& profile, const Cluster& cluster, const std::vector<int>& workers,
                              const TuneOptions& options) {
  std::vector<ScaleCurve> curves;
  for (auto n = workers.rbegin(); n != workers.rend(); ++n) {
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

std::vector<ServerPoint> server_sweep(const Profile& profile, const Cluster& cluster, int most,
                                      Placement placement, const TuneOptions& options) {
  std::vector<ServerPoint> points;
  TuneOptions one = for_workers(options, workers_now(cluster, options));
  one.draws = 0;
  for (const int servers : doublings(most)) {
    one.roads = {ParameterServer{servers, placement, Assignment::kEven}};
    const Answer answer = tune(profile, cluster, one);
    ServerPoint point{servers, answer.ranking.front().prediction.iteration, 0};
    if (!points.empty()) point.marginal_gain = 1 - point.iteration / points.back().iteration;
    points.push_back(point);
  }
  return points;
}

std::vector<PhaseCell> phase_map(const Profile& profile, const Cluster& cluster,
                                 const std::vector<int>& workers, const std::vector<double>& latency_factors,
                                 const std::vector<double>& time_per_byte_factors,
                                 const TuneOptions& options) {
  std::vector<PhaseCell> cells;
  for (const int n : workers) {
    TuneOptions changed = for_workers(options, n);
    changed.draws = 0;
    for (const double latency : latency_factors) {
      for (const double per_byte : time_per_byte_factors) {
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

std::vector<Flip> flip_points(const Profile& profile, const Cluster& cluster, const TuneOptions& options) {
  const int now = workers_now(cluster, options);
  TuneOptions plain = for_workers(options, now);
  plain.draws = 0;
  const std::string before = winner(profile, cluster, plain);
  struct Direction {
    std::string change, text;
    std::function<std::string(double)> winner_at;
  };
  const std::vector<Direction> directions = {
      {"network", "the network is {:.2g} times slower",
       [&](double by) { return winner(profile, with_network(cluster, by, by), plain); }},
      {"device", "the device is {:.2g} times faster",
       [&](double by) { return winner(scaled(profile, 1, 1 / by), cluster, plain); }},
      {"workers", "there are {:.2g} times as many workers",
       [&](double by) {
         return winner(profile, cluster, for_workers(plain, static_cast<int>(std::lround(by * now))));
       }},
  };
  std::vector<Flip> flips;
  for (const Direction& direction : directions) {
    const auto change = first_change(before, direction.winner_at);
    if (!change) continue;
    const auto& [factor, after] = *change;
    flips.push_back(
        {direction.change, factor, before, after,
         fmt::format("{} wins once {}.", after, fmt::format(fmt::runtime(direction.text), factor))});
  }
  return flips;
}

nlohmann::json to_json(const std::vector<ScaleCurve>& curves) {
  nlohmann::json json = nlohmann::json::array();
  for (const ScaleCurve& curve : curves) {
    nlohmann::json points = nlohmann::json::array();
    for (const ScalePoint& p : curve.points) {
      points.push_back({{"workers", p.workers},
                        {"iteration_seconds", p.iteration.count()},
                        {"low_seconds", p.low.count()},
                        {"high_seconds", p.high.count()},
                        {"samples_per_second", p.samples_per_second},
                        {"speedup", p.speedup},
                        {"efficiency_ratio", p.efficiency}});
    }
    json.push_back({{"method", curve.method}, {"title", curve.title}, {"points", std::move(points)}});
  }
  return json;
}

nlohmann::json to_json(const std::vector<ServerPoint>& points) {
  nlohmann::json json = nlohmann::json::array();
  for (const ServerPoint& p : points) {
    json.push_back({{"servers", p.servers},
                    {"iteration_seconds", p.iteration.count()},
                    {"marginal_gain_ratio", p.marginal_gain}});
  }
  return json;
}

nlohmann::json to_json(const std::vector<PhaseCell>& cells) {
  nlohmann::json json = nlohmann::json::array();
  for (const PhaseCell& c : cells) {
    json.push_back({{"workers", c.workers},
                    {"latency_factor", c.latency_factor},
                    {"time_per_byte_factor", c.time_per_byte_factor},
                    {"published", c.published},
                    {"road", c.road},
                    {"iteration_seconds", c.iteration.count()},
                    {"joint_win_ratio", c.joint_win},
                    {"binding", to_string(c.binding)}});
  }
  return json;
}

nlohmann::json to_json(const std::vector<Flip>& flips) {
  nlohmann::json json = nlohmann::json::array();
  for (const Flip& f : flips) {
    json.push_back({{"change", f.change},
                    {"factor", f.factor},
                    {"before", f.before},
                    {"after", f.after},
                    {"sentence", f.sentence}});
  }
  return json;
}

std::string to_csv(const std::vector<ScaleCurve>& curves) {
  std::string csv =
      "method,workers,iteration_seconds,low_seconds,high_seconds,samples_per_second,speedup,efficiency\n";
  for (const ScaleCurve& curve : curves) {
    for (const ScalePoint& p : curve.points) {
      csv += fmt::format("{},{},{},{},{},{},{},{}\n", curve.method, p.workers, p.iteration.count(),
                         p.low.count(), p.high.count(), p.samples_per_second, p.speedup, p.efficiency);
    }
  }
  return csv;
}

std::string to_csv(const std::vector<PhaseCell>& cells) {
  std::string csv =
      "workers,latency_factor,time_per_byte_factor,published,road,iteration_seconds,joint_win,binding\n";
  for (const PhaseCell& c : cells) {
    csv += fmt::format("{},{},{},{},{},{},{},{}\n", c.workers, c.latency_factor, c.time_per_byte_factor,
                       c.published, c.road, c.iteration.count(), c.joint_win, to_string(c.binding));
  }
  return csv;
}

}  // namespace commtune::tuner
