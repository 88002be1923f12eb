#include "api/question/answer.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "api/actions/tune.h"
#include "api/question/plan_lookup.h"
#include "api/view/outcome_json.h"
#include "perfmodel/base/error.h"
#include "tests/api/question/lab_test.h"

namespace commtune::api {
namespace {

class AnswerTest : public LabTest {
 protected:
  TuneOutcome job() { return tune_job(context_, question_); }
};

TEST_F(AnswerTest, IsOfTheHostsThatTheJobWouldHave) {
  question_.allocation.nodes = "n1";
  const TuneOutcome outcome = job();
  EXPECT_EQ(outcome.answer.workers, 2);
  EXPECT_TRUE(find_stored_plan(store_, "latest").ranking.contains("question"));
  question_.allocation.nodes = "n9";
  EXPECT_THAT(commtune::tests::error_of([&] { job(); }),
              commtune::tests::IsError(ErrorCode::kNotFound, "n9"));
}

TEST_F(AnswerTest, ToAWhatIfBelongsToNoFit) {
  const TuneOutcome as_it_is = job();
  EXPECT_EQ(find_stored_plan(store_, "latest").fit, as_it_is.fit);
  EXPECT_FALSE(find_stored_plan(store_, "latest").ranking.contains("question"));
  question_.overrides.bandwidth_scale = 0.1;
  const TuneOutcome slow = job();
  EXPECT_GT(slow.chosen().prediction.iteration, as_it_is.chosen().prediction.iteration);
  EXPECT_FALSE(find_stored_plan(store_, "latest").fit);
  EXPECT_EQ(to_json(slow).at("overrides").at("bandwidth_scale"), 0.1);
  EXPECT_FALSE(to_json(as_it_is).contains("overrides"));
}

TEST_F(AnswerTest, KeepsAsMuchAsItIsAskedTo) {
  question_.keep = Keep::kNone;
  const std::size_t before = store_.plans().rows.size();
  EXPECT_TRUE(job().plans.empty());
  EXPECT_EQ(store_.plans().rows.size(), before);
  EXPECT_FALSE(to_json(job()).contains("id"));
  question_.keep = Keep::kAll;
  const TuneOutcome outcome = job();
  EXPECT_EQ(outcome.plans.size(), outcome.answer.ranking.size());
}

TEST_F(AnswerTest, RecommendsWorkersWhereItIsAskedTo) {
  EXPECT_FALSE(job().recommended);
  question_.most_workers = 4;
  question_.least_efficiency = 0.01;
  const TuneOutcome outcome = job();
  ASSERT_TRUE(outcome.recommended);
  EXPECT_EQ(outcome.recommended->workers, 4);
  EXPECT_EQ(to_json(outcome).at("recommended").at("workers"), 4);
  EXPECT_EQ(answer_to_json(outcome).at("recommended").at("workers"), 4);
}

TEST_F(AnswerTest, IsExplainedWhereThatIsAskedFor) {
  EXPECT_FALSE(to_json(job()).contains("explanation"));
  question_.explain = "";
  const TuneOutcome outcome = job();
  ASSERT_TRUE(outcome.explained);
  EXPECT_EQ(outcome.explained->plan, outcome.chosen().plan);
  EXPECT_EQ(outcome.explained->explanation.prediction.iteration, outcome.chosen().prediction.iteration);
  const nlohmann::json explanation = to_json(outcome).at("explanation");
  EXPECT_EQ(explanation.at("method"), outcome.chosen().title);
  EXPECT_FALSE(explanation.at("critical_path").empty());
  EXPECT_THAT(find_stored_plan(store_, "latest").ranking.dump(),
              ::testing::Not(::testing::HasSubstr("critical_path")));

  question_.explain = "bsp-ps";
  EXPECT_EQ(job().explained->plan.method, "bsp-ps");
  question_.explain = "bsp-pss";
  EXPECT_THAT(commtune::tests::error_of([&] { job(); }),
              commtune::tests::IsError(ErrorCode::kNotFound, "did you mean \"bsp-ps\"?"));
}

TEST_F(AnswerTest, HasTwoFormsThatAgree) {
  question_.explain = "";
  const TuneOutcome outcome = job();
  const nlohmann::json ours = to_json(outcome), scheduler = answer_to_json(outcome);
  for (const char* key : {"id", "fit", "stale", "differences", "profile", "plans", "ranking", "checked",
                          "reason", "explanation"})
    EXPECT_EQ(ours.at(key), scheduler.at(key)) << key;
  EXPECT_EQ(ours.at("chosen"), scheduler.at("method"));
}

}  // namespace
}  // namespace commtune::api
