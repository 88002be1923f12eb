#include "api/view/methods_json.h"

#include <nlohmann/json.hpp>

#include "tuner/methods/method.h"
#include "tuner/methods/where_best.h"

namespace commtune::api {

nlohmann::json methods_to_json() {
  nlohmann::json methods = nlohmann::json::array(), where = nlohmann::json::array();
  for (const tuner::Method& method : tuner::methods())
    methods.push_back({{"method", method.name},
                       {"title", method.title},
                       {"version", method.version},
                       {"source", method.source},
                       {"does", method.does},
                       {"architecture", to_string(method.architecture)},
                       {"servers", method.servers == Assignment::kHashed ? "whole" : "even"},
                       {"reconstructed", method.origin == tuner::MethodSource::kReconstructed}});
  for (const tuner::MethodCell& row : tuner::where_best())
    where.push_back({{"model", row.model},
                     {"workers", row.workers},
                     {"latency_seconds", row.latency.count()},
                     {"bytes_per_second", row.bytes_per_second},
                     {"method", row.method},
                     {"ahead_ratio", row.ahead},
                     {"joint_win_ratio", row.joint_win},
                     {"gap_ratio", row.gap}});
  return {{"methods", std::move(methods)}, {"where_best", std::move(where)}};
}

}  // namespace commtune::api
