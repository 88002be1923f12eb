#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tuner/whatif.h"

namespace commtune::tuner {

namespace {

const char* basis_name(const ScalePoint& point) {
  return point.basis == Basis::kMeasured ? "measured" : "formula";
}

/// A cell of a CSV file (RFC 4180): quoted where it holds a comma or a quote.
std::string cell(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

}  // namespace

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
                        {"efficiency_ratio", p.efficiency},
                        {"road", describe(p.road)},
                        {"basis", basis_name(p)},
                        {"extrapolated", p.extrapolated}});
    }
    json.push_back({{"method", curve.method}, {"title", curve.title}, {"points", std::move(points)}});
  }
  return json;
}

nlohmann::json to_json(const std::vector<ServerPoint>& points) {
  nlohmann::json json = nlohmann::json::array();
  for (const ServerPoint& p : points) {
    json.push_back({{"servers", p.servers},
                    {"title", p.title},
                    {"road", describe(p.road)},
                    {"iteration_seconds", p.iteration.count()},
                    {"samples_per_second", p.samples_per_second},
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
      "method,workers,iteration_seconds,low_seconds,high_seconds,samples_per_second,speedup,"
      "efficiency_ratio,road,basis\n";
  for (const ScaleCurve& curve : curves) {
    for (const ScalePoint& p : curve.points) {
      csv += fmt::format("{},{},{},{},{},{},{},{},{},{}\n", curve.method, p.workers, p.iteration.count(),
                         p.low.count(), p.high.count(), p.samples_per_second, p.speedup, p.efficiency,
                         cell(describe(p.road)), basis_name(p));
    }
  }
  return csv;
}

std::string to_csv(const std::vector<ServerPoint>& points) {
  std::string csv = "servers,title,road,iteration_seconds,samples_per_second,marginal_gain_ratio\n";
  for (const ServerPoint& p : points) {
    csv += fmt::format("{},{},{},{},{},{}\n", p.servers, cell(p.title), cell(describe(p.road)),
                       p.iteration.count(), p.samples_per_second, p.marginal_gain);
  }
  return csv;
}

std::string to_csv(const std::vector<PhaseCell>& cells) {
  std::string csv =
      "workers,latency_factor,time_per_byte_factor,published,road,iteration_seconds,joint_win_ratio,"
      "binding\n";
  for (const PhaseCell& c : cells) {
    csv +=
        fmt::format("{},{},{},{},{},{},{},{}\n", c.workers, c.latency_factor, c.time_per_byte_factor,
                    cell(c.published), cell(c.road), c.iteration.count(), c.joint_win, to_string(c.binding));
  }
  return csv;
}

}  // namespace commtune::tuner
