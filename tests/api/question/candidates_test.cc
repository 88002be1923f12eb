#include "api/question/candidates.h"

#include <gmock/gmock.h>

#include "api/actions/candidates.h"
#include "api/output/report.h"
#include "tests/api/question/lab_test.h"

namespace commtune::api {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

void expect_candidate_refused(const std::string& text, const std::string& why) {
  EXPECT_THAT(commtune::tests::error_of([&] { candidate_from_text(text); }),
              commtune::tests::IsError(ErrorCode::kBadInput, why));
}

TEST(Candidate, IsSaidAtAShellByItsNameAndFlags) {
  const CandidateAllocation alone = candidate_from_text("all");
  EXPECT_EQ(alone.name, "all");
  EXPECT_EQ(alone.allocation.workers, 0);
  const CandidateAllocation many = candidate_from_text(
      "many cluster=lab nodes=n[1-2],n4 workers=3 node-count=2 devices-per-node=4 servers=1 dedicated=1 "
      "hashed");
  EXPECT_EQ(many.cluster, "lab");
  EXPECT_EQ(many.allocation.nodes, "n[1-2],n4");
  EXPECT_EQ(many.allocation.workers, 3);
  EXPECT_EQ(many.allocation.node_count, 2);
  EXPECT_EQ(many.allocation.devices_per_node, 4);
  EXPECT_EQ(many.allocation.limits.colocated_servers, 1);
  EXPECT_EQ(many.allocation.limits.dedicated_servers, 1);
  EXPECT_TRUE(many.allocation.limits.hashed);
}

TEST(Candidate, ObeysTheLimitsOfARequest) {
  expect_candidate_refused("", "name: ");
  expect_candidate_refused("nodes=n1", "begins with a name");
  expect_candidate_refused("a colour=red",
                           "\"colour\" says nothing of a candidate: expected cluster, workers, nodes, "
                           "node-count, devices-per-node, servers, dedicated, hashed");
  expect_candidate_refused("a workers=0", "workers: expected a positive integer, got 0");
  expect_candidate_refused("a workers=many", "workers: expected");
  expect_candidate_refused("a devices-per-node=2000", "devices_per_node: ");
  expect_candidate_refused("a hashed=1", "hashed: expected true or false");
}

class CandidatesTest : public LabTest {
 protected:
  json compared(std::initializer_list<const char*> candidates) {
    question_.candidates.clear();
    for (const char* text : candidates) question_.candidates.push_back(candidate_from_text(text));
    return candidates_job(context_, question_);
  }
};

TEST_F(CandidatesTest, AreAnsweredEachOnItsOwn) {
  const json answer = compared({"both", "one nodes=n1", "none nodes=x9"});
  EXPECT_EQ(answer.at("status"), "compared");
  std::vector<json> workers, status;
  double fastest = 0;
  std::string best;
  for (const json& candidate : answer.at("candidates")) {
    const json& own = candidate.at("answer");
    status.push_back(own.at("status"));
    workers.push_back(own.value("workers", 0));
    if (own.value("samples_per_second", 0.0) <= fastest) continue;
    fastest = own.at("samples_per_second").get<double>();
    best = candidate.at("name").get<std::string>();
  }
  EXPECT_THAT(status, ::testing::ElementsAre("planned", "planned", "unknown"));
  EXPECT_THAT(workers, ::testing::ElementsAre(4, 2, 0));
  EXPECT_EQ(answer.at("best"), best);

  const std::string report = candidates_report(answer);
  EXPECT_THAT(report, HasSubstr("the most samples per second: " + best));
  EXPECT_THAT(report, ::testing::ContainsRegex("\n> " + best + " "));
  EXPECT_THAT(report, HasSubstr("none: no answer: nodes: cluster \"lab\" was measured without x9"));
}

TEST_F(CandidatesTest, ThatNobodyKnowsDoNotWin) {
  const json answer = compared({"none cluster=elsewhere"});
  EXPECT_TRUE(answer.at("best").is_null());
  EXPECT_EQ(answer.at("candidates").at(0).at("answer").at("code"), "not_found");
  EXPECT_THAT(candidates_report(answer), HasSubstr("no candidate has an answer"));
}

TEST_F(CandidatesTest, ShareTheTimeForPlanning) {
  question_.plan_time = Seconds{0};
  const json answer = compared({"both", "one nodes=n1"});
  for (const json& candidate : answer.at("candidates"))
    EXPECT_EQ(candidate.at("answer").at("code"), "timeout");
}

}  // namespace
}  // namespace commtune::api
