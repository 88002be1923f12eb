#include <nlohmann/json.hpp>

#include "tuner/whatif.h"

namespace commtune::tuner {

namespace {

const char* basis_name(const ScalePoint& point) {
  return point.basis == Basis::kMeasured ? "measured" : "formula";
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

}  // namespace commtune::tuner
