#include "api/view/outcome_json.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/export/export.h"
#include "api/export/variables.h"
#include "api/view/answer_json.h"
#include "api/view/or_null.h"
#include "api/view/prediction_json.h"
#include "api/view/whatif_json.h"
#include "perfmodel/base/overloaded.h"
#include "perfmodel/cost/doubtful_fits.h"

namespace commtune::api {
namespace {

using nlohmann::json;

/// Not the timeline, which is the trace's.
json to_json(const Explained& explained) {
  const tuner::Explanation& e = explained.explanation;
  json path = json::array(), improvements = json::array();
  for (const tuner::CriticalStep& step : e.critical_path)
    path.push_back(
        {{"what", step.what}, {"from_seconds", step.from.count()}, {"until_seconds", step.until.count()}});
  for (const tuner::Improvement& improvement : e.improvements)
    improvements.push_back({{"what", improvement.what},
                            {"gain_seconds", improvement.gain.count()},
                            {"gain_ratio", improvement.gain / e.prediction.iteration}});
  return {{"method", explained.method},
          {"iteration_seconds", e.prediction.iteration.count()},
          {"communication_ratio", e.communication_ratio},
          {"worker_sends_bytes", e.worker_traffic.count},
          {"server_sends_bytes", e.server_traffic.count},
          {"critical_path", std::move(path)},
          {"improvements", std::move(improvements)},
          {"flip_points", api::to_json(explained.flips)}};
}

/// The answer but its plan, with what it rests on and what of it is stored.
///
/// document  of the answer where it was written out already, else null
json with_origin(const TuneOutcome& outcome, json document) {
  json out = document.is_null() ? to_json_but_plan(outcome.answer) : std::move(document);
  out["fit"] = fit_to_json(outcome.fit);
  if (!outcome.fits.empty()) out["fits"] = outcome.fits;
  put_marks(out, outcome.marks);
  out["profile"] = outcome.profile;
  out["plans"] = outcome.plans;
  if (outcome.explained) out["explanation"] = to_json(*outcome.explained);
  return out;
}

/// Of the chosen plan; 0: it is not stored.
RowId stored_id(const TuneOutcome& outcome) {
  const auto stored = outcome.plans.find(outcome.chosen().method);
  return stored == outcome.plans.end() ? 0 : stored->second;
}

struct ServersOf {
  int servers = 0;
  std::string placement = "none";
};

ServersOf servers_of(const Road& road) {
  return match(
      road, [](const AllReduce&) { return ServersOf{}; },
      [](const ParameterServer& p) {
        return ServersOf{p.servers, to_string(p.placement)};
      });
}

/// Its bounds are null without draws, so that they are always there.
json iteration_to_json(const tuner::Entry& entry) {
  const Prediction& p = entry.prediction;
  return {{"seconds", p.iteration.count()},
          {"low_seconds", entry.doubt ? json(entry.doubt->low.count()) : json(nullptr)},
          {"high_seconds", entry.doubt ? json(entry.doubt->high.count()) : json(nullptr)},
          {"compute_seconds", p.compute.count()},
          {"exposed_seconds", p.exposed.count()},
          {"basis", basis_name(p.basis)},
          {"extrapolated", p.extrapolated}};
}

std::vector<std::string> notes_of(const TuneOutcome& given, const tuner::Entry& chosen) {
  std::vector<std::string> notes;
  if (given.question.overrides.any())
    notes.emplace_back(
        "a what-if: the plan belongs to no fit, and its prediction is not the cluster's as it is");
  if (given.answer.wire != WireFormat::kAsIs)
    notes.push_back(
        fmt::format("gradients are cast to {} while they travel and summed in that type: not lossless",
                    to_string(given.answer.wire)));
  if (!given.answer.complete)
    notes.emplace_back(
        "incomplete: the time limit passed before everything was tried, so there may be a better plan; "
        "the same question is computed again");
  if (chosen.prediction.basis != Basis::kMeasured)
    notes.push_back(
        fmt::format("no probe ran this road with {} workers: its cost is a formula over the measured links",
                    given.answer.workers));
  if (chosen.prediction.extrapolated)
    notes.emplace_back("some message is larger or smaller than what was probed");
  for (const tuner::DoubtfulFit& fit : given.answer.doubtful) {
    if (std::ranges::find(fit.methods, chosen.method) != fit.methods.end())
      notes.push_back(fmt::format("it rests on a doubtful fit: {}: {}", fit.fit, to_string(fit.quality)));
  }
  if (given.made.options.draws == 0) notes.emplace_back("no interval: the question asked for no draws");
  if (given.made.profile.origin.how != "measured")
    notes.push_back(fmt::format(
        "layer times are {}{}, not measured here", given.made.profile.origin.how,
        given.made.profile.origin.device.empty() ? "" : " for " + given.made.profile.origin.device));
  return notes;
}

}  // namespace

json to_json(const TuneOutcome& outcome) {
  json out = with_origin(outcome, outcome.document);
  out["plan"] = to_json(outcome.chosen().plan);
  if (const RowId id = stored_id(outcome); id > 0) out["id"] = id;
  if (!outcome.runs.empty()) out["runs"] = outcome.runs;
  if (outcome.question.overrides.any()) out["overrides"] = to_json(outcome.question.overrides);
  if (outcome.recommended)
    out["recommended"] = {{"workers", outcome.recommended->workers}, {"reason", outcome.recommended->reason}};
  return out;
}

json environment_of(const Plan& plan, const Profile& profile, RowId plan_id, Seconds iteration) {
  json environment = json::object();
  const auto put = [&](Variable variable, std::string value) {
    environment[std::string(variable.name())] = std::move(value);
  };
  put("COMMTUNE_EXPECTED_STEP_SECONDS", fmt::format("{:.6g}", iteration.count()));
  if (plan_id > 0) put("COMMTUNE_PLAN", std::to_string(plan_id));
  for (const auto& [name, value] : export_env(plan, profile, {}).settings) environment[name] = value;
  return environment;
}

json answer_to_json(TuneOutcome given) {
  const tuner::Answer& answer = given.answer;
  const tuner::Entry& chosen = given.chosen();
  const RowId id = stored_id(given);
  const ServersOf servers = servers_of(chosen.plan.road);
  json out = with_origin(given, std::move(given.document));
  out.erase("chosen");
  out.erase("compute_seconds");
  out.erase("intensity_operations_per_parameter");
  out["status"] = "planned";
  out["id"] = id;
  out["digest"] = plan_digest(chosen);
  out["layout"] = chosen.plan.layout;
  out["cached"] = false;
  out["cluster"] = given.made.cluster.name;
  out["servers"] = servers.servers;
  out["placement"] = servers.placement;
  out["method"] = chosen.method;
  out["title"] = chosen.title;
  out["road"] = describe_road(chosen.plan);
  out["transport"] = over_transport(given.made.cluster, chosen.plan.transport).transport;
  out["iteration"] = iteration_to_json(chosen);
  out["samples_per_second"] = or_null(chosen.samples_per_second);
  out["speedup"] = chosen.speedup;
  out["gap_ratio"] = answer.wire == WireFormat::kAsIs ? json(chosen.gap) : json(nullptr);
  out["environment"] = environment_of(chosen.plan, given.made.profile, id, chosen.prediction.iteration);
  out["launch"] = id == 0 ? std::string() : fmt::format("tune run {} --hosts FILE", id);
  const Recommendation recommended = given.recommended.value_or(Recommendation{
      answer.workers, answer.complete ? "as asked; recommend_workers looks for a better number"
                                      : "as asked; there was no time to look for a better number"});
  out["recommended"] = {{"workers", recommended.workers},
                        {"servers", servers.servers},
                        {"placement", servers.placement},
                        {"reason", recommended.reason}};
  out["overrides"] = to_json(given.question.overrides);
  out["notes"] = notes_of(given, chosen);
  return out;
}

}  // namespace commtune::api
