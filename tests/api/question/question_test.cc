#include "api/question/question.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "perfmodel/base/error.h"
#include "tests/store/support.h"

namespace commtune::api {
namespace {

nlohmann::json body(const nlohmann::json& more = nlohmann::json::object()) {
  nlohmann::json out{{"model", "resnet50"}, {"cluster", "lab"}};
  out.update(more);
  return out;
}

void expect_refused(const nlohmann::json& more, const std::string& why) {
  EXPECT_THAT(tests::error_of([&] { question_from_json(body(more)); }),
              tests::IsError(ErrorCode::kBadInput, why));
}

TEST(Question, OfAModelAndAClusterRunsNothing) {
  const Question question = question_from_json(body());
  EXPECT_EQ(question.model, "resnet50");
  EXPECT_EQ(question.cluster.name, "lab");
  EXPECT_FALSE(question.cluster.given);
  EXPECT_FALSE(question.asks_for_runs());
  EXPECT_FALSE(question.is_changed());
}

TEST(Question, AsksForChecksAsTheCommandLineDoes) {
  EXPECT_EQ(question_from_json(body({{"check", "5s"}})).check, Seconds{5});
  EXPECT_EQ(question_from_json(body({{"plan_time", "90s"}})).plan_time, Seconds{90});
  EXPECT_TRUE(question_from_json(body({{"hashed", true}})).allocation.limits.hashed);
  EXPECT_TRUE(question_from_json(body({{"thorough", true}})).thorough);
  expect_refused({{"check", "5"}}, "check: ");
  expect_refused({{"check", "1ms"}}, "check: ");
  expect_refused({{"check", 5}}, "check: ");
  expect_refused({{"hashed", 1}}, "hashed: ");
}

TEST(Question, IsExplainedOfTheChosenPlanOrOfAMethods) {
  EXPECT_FALSE(question_from_json(body()).explain);
  EXPECT_FALSE(question_from_json(body({{"explain", false}})).explain);
  EXPECT_EQ(question_from_json(body({{"explain", true}})).explain, "");
  EXPECT_EQ(question_from_json(body({{"explain", "joint"}})).explain, "joint");
  expect_refused({{"explain", 1}}, "explain: ");
}

TEST(Question, SaysWhatTheProgramThatTrainsWaitsFor) {
  EXPECT_FALSE(question_from_json(body()).barrier);
  const Question question = question_from_json(body({{"barrier", "per-layer"}}));
  EXPECT_EQ(question.barrier, Barrier::kPerLayer);
  EXPECT_FALSE(question.is_changed()) << "such plans can be checked and verified";
  EXPECT_EQ(question_from_json(body({{"barrier", "full"}, {"check", "5s"}})).barrier, Barrier::kFull);
  expect_refused({{"barrier", "layer"}}, "barrier: ");
}

TEST(Question, OfPlansThatCastRunsNone) {
  EXPECT_EQ(question_from_json(body()).wire, WireFormat::kAsIs);
  const Question question = question_from_json(body({{"wire", "bf16"}}));
  EXPECT_EQ(question.wire, WireFormat::kBfloat16);
  EXPECT_TRUE(question.is_changed()) << "what was asked is stored with the answer";
  expect_refused({{"wire", "int8"}}, "wire: ");
  expect_refused({{"wire", "bf16"}, {"check", "5s"}}, "wire: ");
  expect_refused({{"wire", "fp16"}, {"verify", 3}}, "wire: ");
}

TEST(Question, VerifiesANumberOfPlansOrWithinLimits) {
  EXPECT_EQ(question_from_json(body({{"verify", 4}})).verify->plans, 4);
  EXPECT_EQ(question_from_json(body({{"verify", 4}})).verify->budget, tuner::VerifyLimits{}.budget);
  const auto limits = question_from_json(body({{"verify", {{"plans", 2}, {"budget_seconds", 7}}}})).verify;
  EXPECT_EQ(limits->plans, 2);
  EXPECT_EQ(limits->budget, Seconds{7});
  expect_refused({{"verify", 1}}, "verify: ");
  expect_refused({{"verify", "all"}}, "verify: ");
}

TEST(Question, RunsPlansOnAClusterAsItIs) {
  for (const char* runs : {"check", "verify"}) {
    const nlohmann::json how = std::string_view(runs) == "check" ? nlohmann::json("5s") : nlohmann::json(2);
    expect_refused({{runs, how}, {"overrides", {{"batch", 7}}}}, "overrides: ");
    expect_refused({{runs, how}, {"nodes", "n1"}}, "nodes: ");
    expect_refused({{runs, how}, {"keep", "none"}}, "keep: ");
    expect_refused({{runs, how}, {"recommend_workers", {{"most", 4}}}}, "recommend_workers: ");
    expect_refused({{runs, how}, {"candidates", nlohmann::json::array({{{"name", "a"}}})}}, "candidates: ");
  }
}

TEST(Question, MayBringItsClusterAlong) {
  Cluster cluster;
  cluster.name = "elsewhere";
  cluster.transport = "tcp";
  cluster.hosts = {{"n1", 2}};
  const Question question = question_from_json(body({{"cluster", commtune::to_json(cluster)}}));
  EXPECT_EQ(question.cluster.name, "elsewhere");
  EXPECT_EQ(commtune::to_json(*question.cluster.given), commtune::to_json(cluster));
  expect_refused({{"cluster", {{"name", "elsewhere"}}}}, "format");
}

}  // namespace
}  // namespace commtune::api
