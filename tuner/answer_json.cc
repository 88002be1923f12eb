#include <nlohmann/json.hpp>

#include "tuner/tuner.h"

namespace commtune::tuner {

namespace {

nlohmann::json to_json(const Doubt& doubt) {
  return {{"low_seconds", doubt.low.count()},
          {"high_seconds", doubt.high.count()},
          {"probability_best", doubt.probability_best},
          {"expected_regret_ratio", doubt.expected_regret},
          {"optimism_ratio", doubt.optimism}};
}

nlohmann::json to_json(const MeasuredTime& measured) {
  return {{"half_width_seconds", measured.half_width.count()},
          {"iterations", measured.iterations},
          {"rounds", measured.rounds},
          {"behind_ratio", measured.behind}};
}

nlohmann::json to_json(const Verified& verified, const std::string& chosen) {
  return {{"plans", verified.plans},
          {"rounds", verified.rounds},
          {"seconds", verified.elapsed.count()},
          {"certain", verified.end != VerifyEnd::kBudget},
          {"end", to_string(verified.end)},
          {"predicted", verified.predicted},
          {"changed", verified.predicted != chosen}};
}

nlohmann::json to_json(const CheckedPlan& plan) {
  return {{"method", plan.method},
          {"plan_digest", plan.digest},
          {"road", describe(plan.road)},
          {"predicted_seconds", plan.predicted.count()},
          {"measured_seconds", plan.measured.count()},
          {"half_width_seconds", plan.half_width.count()},
          {"factor", plan.factor},
          {"deviation_ratio", plan.deviation},
          {"hidden", plan.hidden}};
}

nlohmann::json to_json(const Check& check) {
  nlohmann::json plans = nlohmann::json::array(), roads = nlohmann::json::array();
  for (const CheckedPlan& plan : check.plans) plans.push_back(to_json(plan));
  for (const RoadFactor& factor : check.factors)
    roads.push_back(
        {{"road", describe(factor.road)}, {"factor", factor.factor}, {"deviation_ratio", factor.deviation}});
  nlohmann::json json{{"plans", std::move(plans)},
                      {"roads", std::move(roads)},
                      {"seconds", check.elapsed.count()},
                      {"before", check.before},
                      {"changed", check.changed}};
  if (!check.passed_over.empty()) json["passed_over"] = check.passed_over;
  if (!check.failure.empty()) json["failure"] = check.failure;
  return json;
}

nlohmann::json to_json(const Entry& entry) {
  const Prediction& p = entry.prediction;
  nlohmann::json json = {
      {"method", entry.method},
      {"title", entry.title},
      {"plan_digest", digest(entry.plan)},
      {"road", describe(entry.plan.road)},
      {"iteration_seconds", p.iteration.count()},
      {"compute_seconds", p.compute.count()},
      {"exposed_seconds", p.exposed.count()},
      {"hidden_seconds", p.hidden().count()},
      {"communication_seconds", p.communication.count()},
      {"communication_ratio", p.compute.count() > 0 ? p.communication / p.compute : 0},
      {"binding", to_string(p.binding)},
      {"basis", p.basis == Basis::kMeasured ? "measured" : "formula"},
      {"extrapolated", p.extrapolated},
      {"road_bound_seconds", entry.bound.count()},
      {"gap_ratio", entry.gap},
      {"samples_per_second", entry.samples_per_second},
      {"speedup", entry.speedup},
      {"messages", entry.messages},
  };
  if (entry.doubt) json["doubt"] = to_json(*entry.doubt);
  if (entry.measured) {
    json["measured_seconds"] = entry.measured->median.count();
    json["measured"] = to_json(*entry.measured);
  }
  if (!entry.failure.empty()) json["failure"] = entry.failure;
  return json;
}

}  // namespace

nlohmann::json to_json(const DoubtfulFit& fit) {
  return {{"fit", fit.fit},
          {"median_relative", fit.quality.median_relative},
          {"p90_relative", fit.quality.p90_relative},
          {"r_squared", fit.quality.r_squared},
          {"methods", fit.methods}};
}

nlohmann::json to_json(const Answer& answer) {
  nlohmann::json ranking = nlohmann::json::array(), bounds = nlohmann::json::array(),
                 doubtful = nlohmann::json::array();
  for (const DoubtfulFit& fit : answer.doubtful) doubtful.push_back(to_json(fit));
  for (const Entry& entry : answer.ranking) ranking.push_back(to_json(entry));
  for (const RoadBound& bound : answer.bounds) {
    bounds.push_back({{"road", describe(bound.road)},
                      {"bound_seconds", bound.bound.count()},
                      {"explanation", bound.explanation}});
    if (bound.bound_low) bounds.back()["bound_low_seconds"] = bound.bound_low->count();
  }
  nlohmann::json json = {
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
      {"plan", answer.ranking.empty() ? nlohmann::json() : to_json(answer.ranking[answer.chosen].plan)},
  };
  if (answer.bound_low) json["bound_low_seconds"] = answer.bound_low->count();
  if (answer.check) json["check"] = to_json(*answer.check);
  if (answer.verified) json["verified"] = to_json(*answer.verified, answer.ranking[answer.chosen].method);
  return json;
}

}  // namespace commtune::tuner
