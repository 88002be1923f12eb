#include "api/actions/tune.h"

#include <chrono>

#include "api/actions/check.h"
#include "api/actions/run_session.h"
#include "api/actions/verify.h"
#include "api/view/answer_json.h"
#include "perfmodel/base/error.h"
#include "store/json_text.h"

namespace commtune::api {
namespace {

Seconds half_width(const tuner::Entry& entry) {
  return entry.doubt ? (entry.doubt->high - entry.doubt->low) / 2 : Seconds{};
}

NewPlan to_row(const tuner::Entry& entry, const Keeping& keeping) {
  return {entry.plan,
          0,
          fit_behind(entry.plan, keeping.fit, keeping.fits),
          nullptr,
          entry.prediction.iteration,
          half_width(entry),
          entry.bound,
          keeping.token};
}

/// The members of an answer.
///
/// but_plan  to_json_but_plan() of it
std::map<std::string, std::string> members_of(const nlohmann::json& but_plan, const std::string& plan) {
  std::map<std::string, std::string> members{{"plan", plan}};
  for (const auto& [name, value] : but_plan.items()) members.emplace(name, json_text(value));
  return members;
}

/// Of one planning that begins now. Planning itself looks at the clock only.
tuner::OutOfTime limit_of(const Question& question, const Cancellation& cancellation) {
  using Clock = std::chrono::steady_clock;
  std::optional<Clock::time_point> end;
  if (question.plan_time) end = Clock::now() + std::chrono::ceil<Clock::duration>(*question.plan_time);
  return [&cancellation, end] {
    if (cancellation.requested()) throw Error(ErrorCode::kInterrupted, "interrupted while planning");
    return end && Clock::now() >= *end;
  };
}

/// An explanation has no limit: it is of an answer that was complete in time.
void explain_outcome(const Context& context, TuneOutcome& outcome) {
  if (!outcome.question.explain) return;
  const auto watch = [&](double fraction) {
    context.progress({"what would change the answer", fraction, {}});
  };
  explain(outcome, watch, limit_of({}, context.cancellation));
}

/// What is kept of an answer that this question asked for.
Keeping keeping_of(const TuneOutcome& outcome) {
  const Question& question = outcome.question;
  Keeping keeping;
  keeping.all = question.keep == Keep::kAll || question.verify;  // what is run is stored before
  if (!question.overrides.any()) keeping.fit = outcome.fit;
  keeping.fits = outcome.fits;
  if ((question.is_changed() || question.thorough || question.barrier) && outcome.fit)
    keeping.question =
        record_of(outcome.made, question.overrides, outcome.made.cluster.name, outcome.fit, outcome.fits);
  if (!outcome.fit) keeping.given = &outcome.made.cluster;
  return keeping;
}

RowId store_row(Store& store, WrittenAnswer::Row& row, RowId profile) {
  row.plan.profile = profile;
  return store.add_plan(row.plan, row.texts);
}

}  // namespace

std::optional<RowId> fit_behind(const Plan& plan, std::optional<RowId> fit, const FitIds& fits) {
  const auto over = fits.find(plan.transport);
  return fit && over != fits.end() ? std::optional(over->second) : fit;
}

RowId keep_plan(Store& store, const Profile& profile, const tuner::Entry& entry, std::optional<RowId> fit) {
  NewPlan row = to_row(entry, {.fit = fit});
  PlanTexts texts = commtune::write_out(row, profile);
  texts.ranking = json_text({{"chosen", false}});
  RowId id = 0;
  store.atomically([&] {
    row.profile = store.put_profile(profile);
    id = store.add_plan(row, texts);
  });
  return id;
}

WrittenAnswer write_out(const Profile& profile, const Keeping& keeping, TuneOutcome& outcome) {
  const tuner::Answer& answer = outcome.answer;
  WrittenAnswer written;
  for (std::size_t i = 0; keeping.all && i < answer.ranking.size(); ++i) {
    if (i == answer.chosen) continue;
    WrittenAnswer::Row& row = written.others.emplace_back();
    row.plan = to_row(answer.ranking[i], keeping);
    row.texts = commtune::write_out(row.plan, profile);
    row.texts.ranking = json_text({{"chosen", false}});
  }
  outcome.document = to_json_but_plan(answer);
  WrittenAnswer::Row& chosen = written.chosen;
  chosen.plan = to_row(answer.ranking.at(answer.chosen), keeping);
  chosen.texts = commtune::write_out(chosen.plan, profile);
  auto& ranking = written.ranking;
  ranking["chosen"] = "true";
  std::map<std::string, std::string> members = members_of(outcome.document, chosen.texts.plan);
  ranking["answer"] = json_text_of_members(members);
  for (const char* same : {"ranking", "bounds", "doubtful"})
    outcome.texts[same] = std::move(members.at(same));
  if (!keeping.question.is_null()) ranking["question"] = json_text(keeping.question);
  if (!keeping.fits.empty()) ranking["fits"] = json_text(keeping.fits);
  if (!outcome.runs.empty()) ranking["runs"] = json_text(outcome.runs);
  if (outcome.marks.any()) {
    nlohmann::json marks;
    put_marks(marks, outcome.marks);
    ranking["marks"] = json_text(marks);
  }
  if (keeping.given != nullptr) ranking["cluster"] = json_text(commtune::to_json(*keeping.given));
  return written;
}

/// The chosen plan is stored last, since it carries the whole answer and the others' ids.
void keep_answer(Store& store, const Profile& profile, WrittenAnswer written, TuneOutcome& outcome) {
  store.atomically([&] {
    outcome.profile = store.put_profile(profile, written.chosen.plan.token);
    for (WrittenAnswer::Row& row : written.others)
      outcome.plans[row.plan.plan.method] = store_row(store, row, outcome.profile);
    written.ranking["plans"] = json_text(outcome.plans);
    WrittenAnswer::Row& chosen = written.chosen;
    chosen.texts.ranking = json_text_of_members(written.ranking);
    outcome.plans[chosen.plan.plan.method] = store_row(store, chosen, outcome.profile);
  });
}

void keep_answer(Store& store, const Profile& profile, const Keeping& keeping, TuneOutcome& outcome) {
  keep_answer(store, profile, write_out(profile, keeping, outcome), outcome);
}

TuneOutcome tune_job(Context& context, const Question& question, const Placing& placing) {
  if (question.asks_for_runs()) check_runs(question);
  Asked asked = look_up(context.store, question, fit_age(context.settings));
  const int ranks = ranks_of_job(asked.made.options, asked.made.cluster);
  if (question.verify) check_verification(*question.verify, placing, ranks);
  RunSession session(ranks);
  TuneOutcome outcome = answer(std::move(asked), limit_of(question, context.cancellation));
  if (question.check && outcome.answer.workers > 1) {
    const auto plan = [&](const Cluster& cluster, const tuner::Trials& trials) {
      tuner::TuneOptions options = outcome.made.options;
      options.trials = trials;
      options.out_of_time = limit_of(question, context.cancellation);
      return tuner::tune(outcome.made.profile, cluster, options);
    };
    check_outcome(context, placing, session, plan, outcome);
  }
  if (!question.verify) session.end();
  recommend_workers(outcome, {}, limit_of(question, context.cancellation));
  if (question.keep != Keep::kNone) {
    Keeping keeping = keeping_of(outcome);
    keep_answer(context.store, outcome.made.profile, keeping, outcome);
    if (question.verify) {
      verify_outcome(context, placing, session, outcome);
      session.end();
      outcome.plans.erase(outcome.chosen().method);
      keeping.all = false;
      keep_answer(context.store, outcome.made.profile, keeping, outcome);
    }
  }
  explain_outcome(context, outcome);
  return outcome;
}

}  // namespace commtune::api
