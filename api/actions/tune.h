#pragma once
// The main job: ranks all methods that commtune knows for a model on a probed cluster, runs the leading plans
// if that is asked for, and keeps the plans of the ranking.

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "api/actions/context.h"
#include "api/question/answer.h"
#include "perfmodel/profile.h"
#include "store/rows.h"
#include "tuner/tuner.h"

namespace commtune::api {

/// Answers a question and stores what it says is to be kept of the answer. With `check` the answer rests on a
/// fit of its own where runs told anything of the costs. With `verify` the predicted answer is stored first,
/// with all plans, and the measured one after it: its chosen plan in a row of its own, since what was stored
/// stays as it was.
///
/// placing  where a question that asks for runs has them: with at least the job's ranks
/// throws   what look_up, tuner::tune and tuner::verify throw; Error{kBadInput} for a placing or limits that
///          break a rule; Error{kInterrupted} when it was cancelled
TuneOutcome tune_job(Context& context, const Question& question, const Placing& placing = {});

/// The fit that prices a plan: over the transport that it wants, where there are several.
std::optional<RowId> fit_behind(const Plan& plan, std::optional<RowId> fit, const FitIds& fits);

/// Stores a plan that is run before there is an answer, with its profile.
RowId keep_plan(Store& store, const Profile& profile, const tuner::Entry& entry, std::optional<RowId> fit);

/// What is stored of an answer, and with what beside it.
struct Keeping {             // NOLINT(bugprone-exception-escape): moving a nlohmann::json does not throw
  bool all = true;           ///< false: the chosen plan only
  std::optional<RowId> fit;  ///< absent: the answer is to a "what if", not a prediction of the cluster
  nlohmann::json question = nullptr;  ///< goes into the chosen plan's ranking
  const Cluster* given = nullptr;     ///< so does this, where the answer rests on no fit of the store
  std::optional<TokenId> token{};     ///< NewPlan::token
  FitIds fits{};                      ///< that the answer rests on, where the cluster has several transports
};

/// Stores the profile and the plans of `outcome.answer` and fills in their ids, in one transaction.
void keep_answer(Store& store, const Profile& profile, const Keeping& keeping, TuneOutcome& outcome);

/// What of an answer is to be stored, checked and written out ahead of the transaction: while that lasts, no
/// other writer gets his turn.
struct WrittenAnswer {  // NOLINT(bugprone-exception-escape): moving a nlohmann::json does not throw
  struct Row {          // NOLINT(bugprone-exception-escape): as above
    NewPlan plan;       ///< without its ranking
    PlanTexts texts;
  };
  std::vector<Row> others;  ///< none where only the chosen plan is kept
  Row chosen;
  std::map<std::string, std::string> ranking;  ///< the members of the chosen plan's but "plans", their ids
};

/// Needs no store, so any thread can. Fills in outcome.document and its texts. Throws what
/// commtune::write_out throws.
WrittenAnswer write_out(const Profile& profile, const Keeping& keeping, TuneOutcome& outcome);
void keep_answer(Store& store, const Profile& profile, WrittenAnswer written, TuneOutcome& outcome);

}  // namespace commtune::api
