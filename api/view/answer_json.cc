#include "api/view/answer_json.h"

#include <nlohmann/json.hpp>

#include "api/view/or_null.h"
#include "api/view/prediction_json.h"
#include "probes/sample.h"
#include "tuner/methods/method.h"

namespace commtune::api {
namespace {

nlohmann::json to_json(const tuner::Doubt& doubt) {
  return {{"low_seconds", doubt.low.count()},
          {"high_seconds", doubt.high.count()},
          {"probability_best", doubt.probability_best},
          {"expected_regret_ratio", doubt.expected_regret},
          {"optimism_ratio", doubt.optimism}};
}

nlohmann::json to_json(const tuner::MeasuredTime& measured) {
  return {{"half_width_seconds", measured.half_width.count()},
          {"iterations", measured.iterations},
          {"rounds", measured.rounds},
          {"behind_ratio", measured.behind}};
}

nlohmann::json to_json(const tuner::Verified& verified, const std::string& chosen) {
  return {{"plans", verified.plans},
          {"rounds", verified.rounds},
          {"seconds", verified.elapsed.count()},
          {"certain", verified.end != tuner::VerifyEnd::kBudget},
          {"end", to_string(verified.end)},
          {"predicted", verified.predicted},
          {"changed", verified.predicted != chosen}};
}

nlohmann::json with_transport(nlohmann::json object, const std::string& transport) {
  if (!transport.empty()) object["transport"] = transport;
  return object;
}

nlohmann::json to_json(const tuner::CheckedPlan& plan) {
  return with_transport({{"method", plan.method},
                         {"plan_digest", plan.digest},
                         {"road", describe(plan.road)},
                         {"predicted_seconds", plan.predicted.count()},
                         {"measured_seconds", plan.measured.count()},
                         {"half_width_seconds", plan.half_width.count()},
                         {"factor", plan.factor},
                         {"deviation_ratio", plan.deviation},
                         {"hidden", plan.hidden}},
                        plan.transport);
}

nlohmann::json to_json(const tuner::Check& check) {
  nlohmann::json plans = nlohmann::json::array(), roads = nlohmann::json::array();
  for (const tuner::CheckedPlan& plan : check.plans) plans.push_back(to_json(plan));
  for (const RoadFactor& factor : check.factors) {
    nlohmann::json& road =
        roads.emplace_back(with_transport(probes::to_json(factor.streamed), factor.transport));
    road["road"] = describe(factor.road);
    road["alone"] = probes::to_json(factor.alone);
  }
  nlohmann::json out{{"plans", std::move(plans)},
                     {"roads", std::move(roads)},
                     {"seconds", check.elapsed.count()},
                     {"before", check.before},
                     {"changed", check.changed}};
  if (!check.passed_over.empty()) out["passed_over"] = check.passed_over;
  if (!check.failure.empty()) out["failure"] = check.failure;
  return out;
}

nlohmann::json to_json(const tuner::Entry& entry) {
  const Prediction& p = entry.prediction;
  nlohmann::json out = prediction_to_json(p);
  out["method"] = entry.method;
  out["title"] = entry.title;
  out["plan_digest"] = plan_digest(entry);
  out["road"] = describe_road(entry.plan);
  if (!entry.plan.transport.empty()) out["transport"] = entry.plan.transport;
  out["communication_ratio"] = p.compute.count() > 0 ? p.communication / p.compute : 0;
  const bool cast = entry.plan.wire != WireFormat::kAsIs;  // beside no bound of lossless plans
  out["road_bound_seconds"] = cast ? nlohmann::json() : nlohmann::json(entry.bound.count());
  out["gap_ratio"] = cast ? nlohmann::json() : nlohmann::json(entry.gap);
  out["samples_per_second"] = or_null(entry.samples_per_second);
  out["speedup"] = entry.speedup;
  out["messages"] = entry.messages;
  out["server_imbalance_ratio"] = entry.server_imbalance;
  if (const tuner::Method* method = tuner::find_method(entry.method)) out["method_version"] = method->version;
  if (entry.doubt) out["doubt"] = to_json(*entry.doubt);
  if (entry.measured) {
    out["measured_seconds"] = entry.measured->median.count();
    out["measured"] = to_json(*entry.measured);
  }
  if (!entry.failure.empty()) out["failure"] = entry.failure;
  return out;
}

}  // namespace

nlohmann::json to_json(const tuner::DoubtfulFit& fit) {
  return {{"fit", fit.fit},
          {"median_relative", fit.quality.median_relative},
          {"p90_relative", fit.quality.p90_relative},
          {"r_squared", fit.quality.r_squared},
          {"methods", fit.methods}};
}

nlohmann::json to_json_but_plan(const tuner::Answer& answer) {
  nlohmann::json ranking = nlohmann::json::array(), bounds = nlohmann::json::array(),
                 doubtful = nlohmann::json::array();
  for (const tuner::DoubtfulFit& fit : answer.doubtful) doubtful.push_back(to_json(fit));
  for (const tuner::Entry& entry : answer.ranking) ranking.push_back(to_json(entry));
  for (const tuner::RoadBound& bound : answer.bounds) {
    bounds.push_back({{"road", describe(bound.road)},
                      {"bound_seconds", bound.bound.count()},
                      {"explanation", bound.explanation}});
    if (bound.bound_low) bounds.back()["bound_low_seconds"] = bound.bound_low->count();
    if (!bound.transport.empty()) bounds.back()["transport"] = bound.transport;
  }
  nlohmann::json out = {
      {"model", answer.model},
      {"cluster", answer.cluster},
      {"workers", answer.workers},
      {"batch", answer.batch},
      {"compute_seconds", answer.compute.count()},
      {"intensity_operations_per_parameter", answer.intensity},
      {"bound_seconds", answer.bound.count()},
      {"bounds", std::move(bounds)},
      {"ranking", std::move(ranking)},
      {"chosen", answer.ranking.empty() ? "" : answer.ranking[answer.chosen].method},
      {"clear_winner", answer.clear_winner},
      {"complete", answer.complete},
      {"checked", answer.checked()},
      {"doubtful", std::move(doubtful)},
      {"reason", answer.reason},
  };
  if (answer.wire != WireFormat::kAsIs) {
    out["wire"] = to_string(answer.wire);
    out["bound_seconds"] = nullptr;
  }
  if (answer.bound_low) out["bound_low_seconds"] = answer.bound_low->count();
  if (answer.check) out["check"] = to_json(*answer.check);
  if (answer.verified) out["verified"] = to_json(*answer.verified, answer.ranking[answer.chosen].method);
  return out;
}

nlohmann::json to_json(const tuner::Answer& answer) {
  nlohmann::json out = to_json_but_plan(answer);
  out["plan"] = answer.ranking.empty() ? nlohmann::json() : to_json(answer.ranking[answer.chosen].plan);
  return out;
}

}  // namespace commtune::api
