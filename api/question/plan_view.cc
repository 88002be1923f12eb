#include "api/question/plan_view.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "api/question/case.h"
#include "api/question/plan_lookup.h"
#include "api/text.h"
#include "perfmodel/error.h"
#include "tuner/tuner.h"

namespace commtune::api {
namespace {

using nlohmann::json;

/// Another method's plan of the same question, made again when it was not stored.
Plan plan_of_method(const PlanView& view, const json& question, const std::string& method,
                    const tuner::OutOfTime& out_of_time) {
  const Case made = case_from_record(question, view.profile, view.cluster);
  tuner::TuneOptions options = made.options;
  options.out_of_time = out_of_time;
  const tuner::Answer answer = tuner::tune(view.profile, made.cluster, options);
  if (method == "best") return answer.ranking.front().plan;
  if (method == "worst") return answer.ranking.back().plan;
  std::vector<std::string> known;
  for (const tuner::Entry& entry : answer.ranking) {
    if (entry.method == method) return entry.plan;
    known.push_back(entry.method);
  }
  if (!answer.complete)
    throw Error(
        ErrorCode::kTimeout,
        fmt::format("parameter method = \"{}\": the time limit passed before its plan was made", method));
  throw Error(ErrorCode::kNotFound, fmt::format("parameter method = \"{}\": not in the ranking{}", method,
                                                did_you_mean(method, known)));
}

/// The id of a method's plan among those stored with the ranking.
std::optional<RowId> stored_method(const json& ranking, const std::string& method) {
  const auto plans = ranking.find("plans");
  if (plans == ranking.end() || !plans->is_object()) return {};
  const auto found = plans->find(method);
  return found == plans->end() ? std::nullopt : std::optional(found->get<RowId>());
}

void choose_method(const Store& store, const PlanRow& row, const std::string& method, PlanView& view,
                   const tuner::OutOfTime& out_of_time) {
  if (method.empty() || method == row.method || method == "chosen") return;
  if (!row.ranking.is_object() || !row.ranking.contains("answer"))
    throw Error(
        ErrorCode::kNotFound,
        fmt::format("parameter method = \"{}\": plan {} is not the chosen one of a ranking", method, row.id));
  std::string name = method;
  const json& entries = row.ranking.at("answer").at("ranking");
  if (method == "best") name = entries.front().at("method").get<std::string>();
  if (method == "worst") name = entries.back().at("method").get<std::string>();
  if (name == row.method) return;
  view.id = stored_method(row.ranking, name);
  if (view.id) {
    if (auto other = store.find_plan(*view.id)) view.plan = std::move(other->plan);
    return;
  }
  if (!row.ranking.contains("question"))
    throw Error(ErrorCode::kNotFound, fmt::format("parameter method = \"{}\": not in the ranking", method));
  view.plan = plan_of_method(view, row.ranking.at("question"), name, out_of_time);
}

}  // namespace

std::optional<Cluster> pricing_cluster(const Store& store, const PlanRow& row) {
  const json& ranking = row.ranking;
  std::optional<RowId> id = row.fit;
  if (!id && ranking.is_object() && ranking.contains("question"))
    id = ranking.at("question").at("fit").get<RowId>();
  if (auto fit = id ? store.find_fit(*id) : std::nullopt) return std::move(fit->snapshot);
  if (ranking.is_object() && ranking.contains("cluster")) return cluster_from_json(ranking.at("cluster"));
  return std::nullopt;
}

PlanView find_plan_view(const Store& store, const std::string& plan, const std::string& method,
                        const tuner::OutOfTime& out_of_time) {
  const PlanRow row = find_stored_plan(store, plan);
  auto profile = store.find_profile(row.profile);
  if (!profile)
    throw Error(ErrorCode::kStorage, fmt::format("profile {} of plan {} is missing", row.profile, row.id));
  PlanView view{row.id, row.plan, std::move(profile->profile), {}, false};
  const bool has_question = row.ranking.is_object() && row.ranking.contains("question");
  if (auto cluster = pricing_cluster(store, row)) {
    view.cluster = *std::move(cluster);
    view.priced = true;
  }
  choose_method(store, row, method, view, out_of_time);
  if (view.priced && has_question)
    view.cluster = case_from_record(row.ranking.at("question"), view.profile, view.cluster).cluster;
  return view;
}

}  // namespace commtune::api
