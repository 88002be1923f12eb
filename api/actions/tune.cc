#include "api/actions/tune.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "api/text.h"
#include "perfmodel/error.h"

namespace commtune::api {
namespace {

constexpr int kPageSize = 1000;

std::vector<std::string> probed_clusters(const Store& store) {
  std::set<std::string> names;
  for (const FitSummary& fit : store.fits({}, Page{kPageSize, 0}).rows) names.insert(fit.cluster_name);
  return {names.begin(), names.end()};
}

Seconds half_width(const tuner::Entry& entry) {
  return entry.doubt ? (entry.doubt->high - entry.doubt->low) / 2 : Seconds{};
}

NewPlan to_row(const tuner::Entry& entry, RowId profile, std::optional<RowId> fit, nlohmann::json ranking) {
  return {entry.plan,        profile,    fit, std::move(ranking), entry.prediction.iteration,
          half_width(entry), entry.bound};
}

}  // namespace

FitRow fit_of(const Store& store, const std::string& cluster) {
  if (auto fit = store.current_fit(cluster)) return std::move(*fit);
  const std::vector<std::string> known = probed_clusters(store);
  throw Error(
      ErrorCode::kNotFound,
      fmt::format(
          "cluster \"{}\" has not been probed{}; {}probe it with: tune probe --cluster {} --hosts FILE",
          cluster, did_you_mean(cluster, known),
          known.empty() ? "" : fmt::format("probed are {}; ", fmt::join(known, ", ")), cluster));
}

bool is_probed(const Store& store, const std::string& cluster) {
  return store.current_fit(cluster).has_value();
}

/// The chosen plan is stored last, since it carries the whole answer and the others' ids.
void keep_answer(Store& store, const Profile& profile, const Keeping& keeping, TuneOutcome& outcome) {
  const tuner::Answer& answer = outcome.answer;
  store.atomically([&] {
    outcome.profile = store.put_profile(profile);
    for (std::size_t i = 0; keeping.all && i < answer.ranking.size(); ++i) {
      const tuner::Entry& entry = answer.ranking[i];
      if (i == answer.chosen) continue;
      outcome.plans[entry.method] =
          store.add_plan(to_row(entry, outcome.profile, keeping.fit, {{"chosen", false}}));
    }
    const tuner::Entry& chosen = answer.ranking.at(answer.chosen);
    NewPlan row = to_row(chosen, outcome.profile, keeping.fit, {{"chosen", true}, {"plans", outcome.plans}});
    row.ranking["answer"] = tuner::to_json(answer);
    if (!keeping.question.is_null()) row.ranking["question"] = keeping.question;
    if (outcome.marks.any()) put_marks(row.ranking["marks"], outcome.marks);
    if (keeping.given != nullptr) row.ranking["cluster"] = commtune::to_json(*keeping.given);
    outcome.plans[chosen.method] = store.add_plan(row);
    outcome.document = std::move(row.ranking["answer"]);
  });
}

TuneOutcome tune_job(Context& context, const TuneRequest& request) {
  const Fitted fitted = find_fitted(context.store, request.cluster);
  TuneOutcome outcome;
  outcome.fit = fitted.fit;
  if (fitted.row)
    outcome.marks = marks_of(context.store, *fitted.row, fitted.cluster, fit_age(context.settings));
  if (request.strict) refuse_differences(outcome.marks.differences);
  outcome.answer = tuner::tune(request.profile, fitted.cluster, request.options);
  const Cluster* const given = fitted.fit ? nullptr : &fitted.cluster;
  keep_answer(context.store, request.profile, {true, fitted.fit, nullptr, given}, outcome);
  return outcome;
}

nlohmann::json to_json(const TuneOutcome& outcome) {
  nlohmann::json out = outcome.document.is_null() ? tuner::to_json(outcome.answer) : outcome.document;
  out["fit"] = fit_to_json(outcome.fit);
  put_marks(out, outcome.marks);
  out["profile"] = outcome.profile;
  out["plans"] = outcome.plans;
  return out;
}

}  // namespace commtune::api
