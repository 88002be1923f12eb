#include "api/view/whatif_json.h"

#include <nlohmann/json.hpp>

#include "api/view/or_null.h"
#include "api/view/prediction_json.h"

namespace commtune::api {

nlohmann::json to_json(const std::vector<tuner::ScaleCurve>& curves) {
  nlohmann::json out = nlohmann::json::array();
  for (const tuner::ScaleCurve& curve : curves) {
    nlohmann::json points = nlohmann::json::array();
    for (const tuner::ScalePoint& p : curve.points) {
      points.push_back({{"workers", p.workers},
                        {"iteration_seconds", p.iteration.count()},
                        {"low_seconds", p.low.count()},
                        {"high_seconds", p.high.count()},
                        {"samples_per_second", or_null(p.samples_per_second)},
                        {"speedup", p.speedup},
                        {"efficiency_ratio", p.efficiency},
                        {"road", describe(p.road)},
                        {"basis", basis_name(p.basis)},
                        {"extrapolated", p.extrapolated}});
    }
    out.push_back({{"method", curve.method}, {"title", curve.title}, {"points", std::move(points)}});
  }
  return out;
}

nlohmann::json to_json(const std::vector<tuner::ServerPoint>& points) {
  nlohmann::json out = nlohmann::json::array();
  for (const tuner::ServerPoint& p : points) {
    out.push_back({{"servers", p.servers},
                   {"title", p.title},
                   {"road", describe(p.road)},
                   {"iteration_seconds", p.iteration.count()},
                   {"samples_per_second", or_null(p.samples_per_second)},
                   {"marginal_gain_ratio", p.marginal_gain}});
  }
  return out;
}

nlohmann::json to_json(const std::vector<tuner::PhaseCell>& cells) {
  nlohmann::json out = nlohmann::json::array();
  for (const tuner::PhaseCell& c : cells) {
    out.push_back({{"workers", c.workers},
                   {"latency_factor", c.latency_factor},
                   {"time_per_byte_factor", c.time_per_byte_factor},
                   {"published", c.published},
                   {"road", c.road},
                   {"iteration_seconds", c.iteration.count()},
                   {"joint_win_ratio", c.joint_win},
                   {"binding", to_string(c.binding)}});
  }
  return out;
}

nlohmann::json to_json(const std::vector<tuner::Flip>& flips) {
  nlohmann::json out = nlohmann::json::array();
  for (const tuner::Flip& f : flips) {
    out.push_back({{"change", f.change},
                   {"factor", f.factor},
                   {"before", f.before},
                   {"after", f.after},
                   {"sentence", f.sentence}});
  }
  return out;
}

}  // namespace commtune::api
