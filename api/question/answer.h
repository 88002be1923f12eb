#pragma once
// The one answer to a question, whoever asks: it is looked up, planned, and where it asks for that, a number
// of workers is recommended. Runs before the answer and what is stored of it are in api/actions/tune.h.

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "api/question/case.h"
#include "api/question/fit_marks.h"
#include "api/question/fitted.h"
#include "api/question/question.h"
#include "store/rows.h"
#include "tuner/explain.h"
#include "tuner/tuner.h"
#include "tuner/whatif.h"

namespace commtune::api {

/// A question with everything looked up.
struct Asked {
  Question question;
  /// What the answer is made from; where runs corrected the costs, with those. The profile is as the question
  /// changed it.
  Case made;
  std::optional<RowId> fit = {};  ///< absent: the cluster was given, or its corrected costs are no fit
  FitIds fits = {};               ///< where the cluster has several transports; `fit` is its own then
  FitMarks marks = {};            ///< of the fit that the question was asked of
};

/// Puts a question together with what it names. Throws Error{kConflict} for what `strict` refuses, and what
/// make_case throws.
///
/// allocation   the question's, or a candidate's
/// fitted  the cluster as its fits have it
Asked asked(Question question, const Allocation& allocation, Profile profile, const Fitted& fitted);

/// The same with what the store has. Throws what find_profile and find_fitted throw, too.
Asked look_up(const Store& store, Question question, const FitAge& age);

/// "The largest number of workers up to which adding them still pays."
struct Recommendation {
  int workers = 0;
  std::string reason;
};

/// Why a plan takes as long as it does, and what would change the answer.
struct Explained {
  std::string method;  ///< its title
  Plan plan;
  tuner::Explanation explanation;
  std::vector<tuner::Flip> flips;  ///< what would make another method of the literature, or road, the best
};

struct TuneOutcome : Asked {  // NOLINT(bugprone-exception-escape): moving a nlohmann::json does not throw
  tuner::Answer answer;
  std::optional<Recommendation> recommended;  ///< absent: it was not asked for, or there was no time
  std::optional<Explained> explained;         ///< absent: it was not asked for, or there was no time
  RowId profile = 0;
  std::map<std::string, RowId> plans;              ///< method -> stored plan
  std::map<std::string, std::vector<RowId>> runs;  ///< method -> those that measured its plan
  nlohmann::json document = nullptr;               ///< to_json_but_plan(answer) once write_out() has made it
  /// Of its members that answer_to_json() leaves as they are, and that are long; written out likewise.
  std::map<std::string, std::string> texts;

  /// The entry of the chosen plan.
  const tuner::Entry& chosen() const { return answer.ranking.at(answer.chosen); }
};

/// Plans. Throws what tuner::tune throws.
TuneOutcome answer(Asked asked, tuner::OutOfTime out_of_time = {});

/// Where the question asks for that and planning is complete: of doublings up to Question::most_workers, the
/// largest number of workers at which the best method's speed-up over one worker is at least
/// Question::least_efficiency times that number. Draws nothing; some ten answers' work, between which `watch`
/// may end it, and within which `out_of_time` is asked.
void recommend_workers(TuneOutcome& outcome, const tuner::Watch& watch = {},
                       tuner::OutOfTime out_of_time = {});

/// Where the question asks for that and planning is complete: explains the plan on the costs that the answer
/// rests on. Draws nothing; some forty answers' work, between and within which it may be ended as above.
/// Throws what entry_of throws.
void explain(TuneOutcome& outcome, const tuner::Watch& watch = {}, tuner::OutOfTime out_of_time = {});

/// The entry of the chosen plan, or of the named method. Throws Error{kNotFound}.
const tuner::Entry& entry_of(const tuner::Answer& answer, const std::string& method);

}  // namespace commtune::api
