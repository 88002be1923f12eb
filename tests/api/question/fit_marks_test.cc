#include "api/question/fit_marks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/actions/tune.h"
#include "api/output/report.h"
#include "api/output/rows.h"
#include "api/view/outcome_json.h"
#include "api/view/row_json.h"
#include "tests/api/rest/made_lab.h"
#include "tests/store/support.h"

namespace commtune::api {
namespace {

using std::chrono::hours;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr Seconds kMonth{30 * 86400.0};

class FitMarksTest : public ::testing::Test {
 protected:
  FitMarksTest() { make_lab(store_, tests::small_profile()); }

  FitRow fit() const { return store_.current_fit("lab").value(); }
  FitMarks marks_after(hours age) const {
    const FitRow row = fit();
    return marks_of(store_, row, row.snapshot, {kMonth, row.origin.created + age});
  }
  TuneOutcome tuned(bool strict = false) {
    settings_.fit_age = Seconds{1e8};
    Question question;
    question.profile = tests::small_profile();
    question.cluster.name = "lab";
    question.draws = 0;
    question.strict = strict;
    Context context{settings_, environment_, store_, cancellation_, {}};
    return tune_job(context, question);
  }

  Settings settings_;
  Environment environment_;
  Store store_ = tests::memory_store();
  Cancellation cancellation_;
};

TEST_F(FitMarksTest, AFitIsStaleFromItsAgeOn) {
  EXPECT_FALSE(marks_after(hours(30 * 24 - 1)).any());
  EXPECT_TRUE(marks_after(hours(30 * 24)).stale);
  EXPECT_THAT(to_text(marks_after(hours(30 * 24))), HasSubstr("probe again"));
  const FitAge old{kMonth, fit().origin.created + hours(24 * 40)};
  EXPECT_TRUE(to_json(static_cast<const FitSummary&>(fit()), old).at("stale").get<bool>());
  EXPECT_THAT(to_table(std::vector<FitSummary>{fit()}, old), HasSubstr("stale"));
  const FitAge young{kMonth, fit().origin.created};
  EXPECT_FALSE(to_json(fit(), young).at("stale").get<bool>());
  EXPECT_THAT(to_table(std::vector<FitSummary>{fit()}, young), Not(HasSubstr("stale")));
}

TEST_F(FitMarksTest, WhatWasSeenLastIsComparedWhenAPlanIsMade) {
  EXPECT_THAT(tuned().marks.differences, IsEmpty());
  EXPECT_FALSE(to_json(tuned()).at("stale").get<bool>());
  EXPECT_NO_THROW(tuned(true));
  store_.see_facts(fit().cluster, {{"host.n2.cpu", "another one"}});
  const TuneOutcome outcome = tuned();
  const std::string difference = "cpu of n2: made up when it was fitted, another one now";
  EXPECT_THAT(outcome.marks.differences, ElementsAre(difference));
  EXPECT_THAT(ranking_report(outcome),
              HasSubstr("warning: the fit was made under other conditions: " + difference));
  EXPECT_EQ(to_json(outcome).at("differences"), nlohmann::json({difference}));
  const auto stored =
      store_.find_plan(outcome.plans.at(outcome.answer.ranking.at(outcome.answer.chosen).method));
  EXPECT_EQ(marks_from_json(stored->ranking.at("marks")), outcome.marks);
}

TEST_F(FitMarksTest, StrictRefusesADifferenceAndNamesIt) {
  store_.see_facts(fit().cluster, {{"host.n2.cpu", "another one"}});
  const std::int64_t plans = store_.plans().rows.front().id;
  EXPECT_THAT(tests::error_of([&] { tuned(true); }),
              tests::IsError(ErrorCode::kConflict, "cpu of n2: made up when it was fitted, another one now"));
  EXPECT_EQ(store_.plans().rows.front().id, plans);
}

TEST_F(FitMarksTest, AStoredFitWithoutAReleaseOrRevisionHasNoDifferences) {
  store_.see_facts(fit().cluster, {{"release.n1.open_mpi", "5.0.3"}});
  EXPECT_THAT(tuned().marks.differences, IsEmpty());
}

}  // namespace
}  // namespace commtune::api
