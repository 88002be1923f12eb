#include "api/question/plan_lookup.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/actions/run.h"
#include "api/actions/tune.h"
#include "api/question/plan_view.h"
#include "perfmodel/base/error.h"
#include "tests/api/question/lab_test.h"

namespace commtune::api {
namespace {

/// An answer of which only the chosen plan was stored.
class PlanLookup : public LabTest {
 protected:
  PlanLookup() {
    question_.overrides.bandwidth_scale = 0.5;
    outcome_ = tune_job(context_, question_);
    row_ = find_stored_plan(store_, "latest");
  }
  const tuner::Entry& slowest() const { return outcome_.answer.ranking.back(); }

  TuneOutcome outcome_;
  PlanRow row_;
};

TEST_F(PlanLookup, FindsTheMethodsOfARanking) {
  EXPECT_EQ(row_.id, outcome_.plans.at(outcome_.chosen().method));
  const std::vector<RankedMethod> ranking = ranking_of(row_);
  ASSERT_EQ(ranking.size(), outcome_.answer.ranking.size());
  for (std::size_t i = 0; i < ranking.size(); ++i) {
    EXPECT_EQ(ranking[i].method, outcome_.answer.ranking[i].method);
    EXPECT_EQ(ranking[i].plan.has_value(), ranking[i].method == row_.method);
  }
  EXPECT_EQ(method_of(row_, "chosen").plan, row_.id);
  EXPECT_EQ(method_of(row_, "worst").method, slowest().method);
  EXPECT_THAT(tests::error_of([&] { method_of(row_, "wfbq"); }),
              tests::IsError(ErrorCode::kNotFound, "not in the ranking"));
}

TEST_F(PlanLookup, APlanThatWasNotStoredIsMadeAgain) {
  const PlanView view = view_plan(store_, row_, "worst");
  EXPECT_FALSE(view.id);
  EXPECT_EQ(digest(view.plan), digest(slowest().plan));
  const PredictedIteration found = predicted_iteration(view.plan, view.profile, view.cluster);
  EXPECT_DOUBLE_EQ(found.prediction.iteration.count(), slowest().prediction.iteration.count());
}

TEST_F(PlanLookup, AndIsRunInPlaceOfTheChosenOne) {
  const std::vector<PlannedJob> jobs = find_jobs(context_, {"latest", {}, {}}, {"worst", "chosen"});
  ASSERT_EQ(jobs.size(), 2U);
  EXPECT_EQ(digest(jobs[0].plan), digest(slowest().plan));
  EXPECT_DOUBLE_EQ(jobs[0].predicted.count(), slowest().prediction.iteration.count());
  EXPECT_EQ(store_.find_plan(jobs[0].plan_id)->method, slowest().method);
  EXPECT_EQ(jobs[1].plan_id, row_.id);
}

TEST_F(PlanLookup, OnlyTheChosenPlanLeadsToOthers) {
  const PlannedJob job = find_jobs(context_, {"latest", {}, {}}, {"worst"}).front();
  EXPECT_THAT(tests::error_of([&] { ranking_of(store_.find_plan(job.plan_id).value()); }),
              tests::IsError(ErrorCode::kBadInput, "not the chosen one"));
}

}  // namespace
}  // namespace commtune::api
