#pragma once
// The main job: ranks all methods that commtune knows for a model on a probed cluster and keeps every plan of
// the ranking.

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "api/actions/check.h"
#include "api/actions/context.h"
#include "api/actions/verify.h"
#include "api/question/fit_marks.h"
#include "api/question/fitted.h"
#include "perfmodel/profile.h"
#include "store/rows.h"
#include "tuner/tuner.h"

namespace commtune::api {

struct TuneRequest {
  Profile profile;
  ClusterChoice cluster;
  tuner::TuneOptions options;
  bool strict = false;  ///< refuse a fit that was made under other conditions than those that hold now
  std::optional<Seconds> plan_time = {};   ///< longest planning, each time anew; absent: no limit
  std::optional<CheckRequest> check = {};  ///< run the leading plans before answering; absent: do not
  std::optional<VerifyRequest> verify;  ///< run what the doubt cannot tell apart; absent: prediction chooses
};

struct TuneOutcome {  // NOLINT(bugprone-exception-escape): moving a nlohmann::json does not throw
  tuner::Answer answer;
  std::optional<RowId> fit;              ///< absent: the cluster was given
  std::optional<Cluster> refitted = {};  ///< what the answer rests on where no fit of the store is that
  FitMarks marks;                        ///< of the fit that the question was asked of
  RowId profile = 0;
  std::map<std::string, RowId> plans;              ///< method -> stored plan
  std::map<std::string, std::vector<RowId>> runs;  ///< method -> those that measured its plan
  nlohmann::json document = nullptr;               ///< tuner::to_json(answer) once keep_answer has made it
};

/// True when the store has a fit of this cluster as it is now.
bool is_probed(const Store& store, const std::string& cluster);

/// The fit that predictions for this cluster rest on. Throws Error{kNotFound} when the cluster has never been
/// probed, naming those that have.
FitRow fit_of(const Store& store, const std::string& cluster);

/// With `check` the answer rests on a fit of its own where runs told anything of the costs. With `verify` the
/// predicted answer is stored first, with all plans, and the measured one after it: its chosen plan in a row
/// of its own, since what was stored stays as it was.
///
/// Throws what find_fitted, tuner::tune and tuner::verify throw; Error{kConflict} for what `strict` refuses;
/// Error{kInterrupted} when it was cancelled.
TuneOutcome tune_job(Context& context, const TuneRequest& request);

/// Stores a plan that is run before there is an answer, with its profile.
RowId keep_plan(Store& store, const Profile& profile, const tuner::Entry& entry, std::optional<RowId> fit);

/// What is stored of an answer, and with what beside it.
struct Keeping {
  bool all = true;           ///< false: the chosen plan only
  std::optional<RowId> fit;  ///< absent: the answer is to a "what if", not a prediction of the cluster
  nlohmann::json question = nullptr;  ///< goes into the chosen plan's ranking
  const Cluster* given = nullptr;     ///< so does this, where the answer rests on no fit of the store
  std::optional<TokenId> token{};     ///< NewPlan::token
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

/// Needs no store, so any thread can. Fills in outcome.document. Throws what commtune::write_out throws.
WrittenAnswer write_out(const Profile& profile, const Keeping& keeping, TuneOutcome& outcome);
void keep_answer(Store& store, const Profile& profile, WrittenAnswer written, TuneOutcome& outcome);

/// tuner::to_json of the answer, with "id" (of the chosen plan), "fit", "profile", "plans" (method -> id)
/// and, where it was verified, "runs" (method -> ids) beside it.
nlohmann::json to_json(const TuneOutcome& outcome);

}  // namespace commtune::api
