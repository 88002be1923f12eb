#include "api/question/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/question/models.h"
#include "api/series.h"
#include "api/text.h"
#include "perfmodel/base/error.h"

namespace commtune::api {

Asked asked(Question question, const Allocation& allocation, Profile profile, const Fitted& fitted) {
  if (question.strict) refuse_differences(fitted.marks.differences);
  Case made = make_case(question, allocation, std::move(profile), *fitted.cluster);
  return {std::move(question), std::move(made), fitted.fit, fitted.fits, fitted.marks};
}

Asked look_up(const Store& store, Question question, const FitAge& age) {
  const Fitted fitted = find_fitted(store, question.cluster, age);
  Profile profile = question.profile ? *question.profile : find_profile(store, question.model);
  const Allocation allocation = question.allocation;
  return asked(std::move(question), allocation, std::move(profile), fitted);
}

TuneOutcome answer(Asked asked, tuner::OutOfTime out_of_time) {
  TuneOutcome outcome{std::move(asked), {}, {}, {}, 0, {}, {}, nullptr, {}};
  tuner::TuneOptions options = outcome.made.options;
  options.out_of_time = std::move(out_of_time);
  outcome.answer = tuner::tune(outcome.made.profile, outcome.made.cluster, options);
  return outcome;
}

void recommend_workers(TuneOutcome& outcome, const tuner::Watch& watch, tuner::OutOfTime out_of_time) {
  const int most = outcome.question.most_workers;
  if (most == 0 || !outcome.answer.complete) return;
  const double least = outcome.question.least_efficiency;
  tuner::TuneOptions options = outcome.made.options;
  options.draws = 0;
  options.out_of_time = std::move(out_of_time);
  Recommendation best{
      1, fmt::format("no number of workers up to {} is worth {:.0f} % of as many", most, 100 * least)};
  std::map<int, double> efficiency;
  for (const tuner::ScaleCurve& curve :
       tuner::scale(outcome.made.profile, outcome.made.cluster, count_series(fmt::format("1..{}", most)),
                    options, watch))
    for (const tuner::ScalePoint& point : curve.points)
      efficiency[point.workers] = std::max(efficiency[point.workers], point.efficiency);
  for (const auto& [workers, ratio] : efficiency) {
    if (ratio < least) continue;
    best = {workers, fmt::format("{} workers do the work of {:.1f}", workers, ratio * workers)};
  }
  outcome.recommended = std::move(best);
}

void explain(TuneOutcome& outcome, const tuner::Watch& watch, tuner::OutOfTime out_of_time) {
  const auto& method = outcome.question.explain;
  if (!method || !outcome.answer.complete) return;
  const Case& made = outcome.made;
  const tuner::Entry& entry = entry_of(outcome.answer, *method);
  Explained explained{entry.title, entry.plan, tuner::explain(made.profile, made.cluster, entry.plan), {}};
  // What would flip it is asked of plans that lose nothing.
  if (outcome.answer.workers > 1 && made.options.wire == WireFormat::kAsIs) {
    tuner::TuneOptions options = made.options;
    options.out_of_time = std::move(out_of_time);
    explained.flips = tuner::flip_points(made.profile, made.cluster, options, watch);
  }
  outcome.explained = std::move(explained);
}

const tuner::Entry& entry_of(const tuner::Answer& answer, const std::string& method) {
  if (method.empty()) return answer.ranking.at(answer.chosen);
  std::vector<std::string> known;
  for (const tuner::Entry& entry : answer.ranking) {
    if (entry.method == method) return entry;
    known.push_back(entry.method);
  }
  throw Error(ErrorCode::kNotFound,
              fmt::format("--method {}: not in the ranking{}", method, did_you_mean(method, known)));
}

}  // namespace commtune::api
