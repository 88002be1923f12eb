// Plans that take turns in one session, and what becomes of the others where one of them fails.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "api/actions/run.h"
#include "perfmodel/base/error.h"
#include "tests/api/actions/made_ranks.h"
#include "tests/api/rest/made_lab.h"
#include "tests/store/support.h"

namespace commtune::api {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Found turn(std::size_t plan) { return Found{"turn", {{"plan", plan}}}; }
Found iteration(std::size_t plan, double seconds) {
  return Found{"iteration", {{"plan", plan}, {"seconds", seconds}}};
}

class RunJobs : public ::testing::Test {
 protected:
  RunJobs() {
    make_lab(store_, profile_);
    settings_.mpirun = ranks_.program();
    settings_.start_timeout = settings_.silence_timeout = Seconds{1000};
    for (const char* method : {"first", "second", "third"}) {
      RunRequest& request = requests_.emplace_back();
      request.job.plan = tests::small_plan(method);
      request.job.profile = profile_;
      request.job.plan_id =
          store_.add_plan({.plan = request.job.plan, .profile = store_.put_profile(profile_)});
      request.placing.hosts = parse_host_list("n1:2,n2:2");
      request.options.iterations = 10;
    }
  }

  /// What the ranks of the n-th start say after their first words, and how they end.
  void on_start(int n, const std::vector<LaunchReport>& reports, int status = 0) {
    const std::string name = "start" + std::to_string(n);
    ranks_.write(name, lines_of(reports));
    ranks_.for_start(
        n, "cat '" + ranks_.file("first") + "' '" + ranks_.file(name) + "'; exit " + std::to_string(status));
  }
  std::vector<RunOutcome> run() { return run_jobs(context_, requests_); }
  std::vector<std::string> methods_of_start(std::size_t n) const {
    std::vector<std::string> methods;
    const nlohmann::json order = ranks_.orders().at(n);
    for (const auto& plan : order.at("plans")) methods.push_back(plan.at("plan").at("method"));
    return methods;
  }
  RunRow row(const RunOutcome& outcome) const { return store_.find_run(outcome.run).value(); }

  const Profile profile_ = tests::small_profile();
  const Failed failed_{ErrorCode::kPeerLost, "rank 2 on n2 went away"};
  tests::TempFolder folder_;
  MadeRanks ranks_{folder_.path()};
  Settings settings_;
  Environment environment_;
  Store store_ = tests::memory_store();
  Cancellation cancellation_;
  Context context_{settings_, environment_, store_, cancellation_, {}};
  std::vector<RunRequest> requests_;
};

TEST_F(RunJobs, TakeTurnsOnRanksThatAreStartedOnce) {
  on_start(1, {turn(0), turn(1), turn(2), turn(0), report_of({0.1}, 0), turn(1), report_of({0.2}, 1), turn(2),
               report_of({0.3}, 2), Finished{nlohmann::json::object()}});
  const auto outcomes = run();
  EXPECT_THAT(ranks_.starts(), SizeIs(1));
  EXPECT_EQ(ranks_.orders().at(0).at("rounds"), 2);  // of five iterations each
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    EXPECT_FALSE(outcomes[i].failure);
    EXPECT_DOUBLE_EQ(outcomes[i].report.median_seconds, 0.1 * static_cast<double>(i + 1));
    EXPECT_EQ(row(outcomes[i]).settings.at("group"), row(outcomes[0]).settings.at("group"));
  }
}

TEST_F(RunJobs, OnePlanThatFailsInTheMiddleEndsNoOther) {
  // The second one fails in its second turn. The others have had one each, which counts no more.
  on_start(1,
           {turn(0), iteration(0, 9), turn(1), iteration(1, 0.5), turn(2), iteration(2, 9), turn(0),
            iteration(0, 9), turn(1), iteration(1, 0.75), failed_},
           7);
  on_start(2, {turn(0), iteration(0, 0.1), turn(1), turn(0), report_of({0.1}, 0), turn(1),
               report_of({0.3}, 1), Finished{nlohmann::json::object()}});
  const auto outcomes = run();
  EXPECT_THAT(ranks_.starts(), SizeIs(2));
  EXPECT_THAT(methods_of_start(0), ElementsAre("first", "second", "third"));
  EXPECT_THAT(methods_of_start(1), ElementsAre("first", "third"));
  ASSERT_TRUE(outcomes[1].failure);
  EXPECT_EQ(outcomes[1].failure->code(), ErrorCode::kPeerLost);
  EXPECT_EQ(row(outcomes[1]).state, WorkState::kFailed);
  EXPECT_EQ(row(outcomes[1]).error, failed_.message);
  EXPECT_THAT(row(outcomes[1]).iteration_seconds, ElementsAre(0.5, 0.75));  // what was measured of it
  EXPECT_THAT(row(outcomes[0]).iteration_seconds, ElementsAre(0.1));
  EXPECT_DOUBLE_EQ(outcomes[2].report.median_seconds, 0.3);
  for (const std::size_t i : {0U, 2U}) EXPECT_EQ(row(outcomes[i]).state, WorkState::kComplete);
}

TEST_F(RunJobs, WhatIsFinishedDoesNotRunAgain) {
  on_start(1, {turn(0), turn(1), turn(2), turn(0), report_of({0.1}, 0), turn(1), failed_}, 7);
  on_start(2, {turn(0), report_of({0.3}, 0), Finished{nlohmann::json::object()}});
  const auto outcomes = run();
  EXPECT_THAT(methods_of_start(1), ElementsAre("third"));
  EXPECT_THAT(row(outcomes[0]).iteration_seconds, ElementsAre(0.1));
  EXPECT_TRUE(outcomes[1].failure);
  EXPECT_THAT(row(outcomes[2]).iteration_seconds, ElementsAre(0.3));
}

TEST_F(RunJobs, WhereNoPlanHasItsTurnNoPlanIsBlamed) {
  // The first one has ended, the next one has not begun.
  on_start(1, {turn(0), report_of({0.1}, 0), failed_}, 7);
  on_start(2,
           {turn(0), report_of({0.2}, 0), turn(1), report_of({0.3}, 1), Finished{nlohmann::json::object()}});
  for (const RunOutcome& outcome : run()) EXPECT_FALSE(outcome.failure);
  EXPECT_THAT(methods_of_start(1), ElementsAre("second", "third"));
}

TEST_F(RunJobs, PlansThatFailOneAfterTheOtherAreLeftOutOneAfterTheOther) {
  for (int n = 1; n <= 3; ++n) on_start(n, {turn(0), failed_}, 7);
  for (const RunOutcome& outcome : run()) EXPECT_TRUE(outcome.failure);
  EXPECT_THAT(ranks_.starts(), SizeIs(3));
  EXPECT_THAT(methods_of_start(2), ElementsAre("third"));
}

TEST_F(RunJobs, WhereRanksDoNotStartAllHaveFailed) {
  on_start(1, {failed_}, 7);
  for (const RunOutcome& outcome : run()) {
    ASSERT_TRUE(outcome.failure);
    EXPECT_EQ(row(outcome).state, WorkState::kFailed);
    EXPECT_THAT(row(outcome).iteration_seconds, IsEmpty());
  }
  EXPECT_THAT(ranks_.starts(), SizeIs(1));
}

TEST_F(RunJobs, AnInterruptionKeepsWhatIsFinished) {
  ranks_.write("begin", lines_of({turn(0), report_of({0.1}, 0), turn(1), iteration(1, 0.5),
                                  Progressed{"timing", 0.5, {}}}));
  ranks_.for_start(1, "cat '" + ranks_.file("first") + "' '" + ranks_.file("begin") + "'; exec sleep 600");
  context_.listener.progress = [this](const Progressed&) { cancellation_.cancel(); };
  const auto outcomes = run();
  EXPECT_FALSE(outcomes[0].failure);
  for (const std::size_t i : {1U, 2U}) EXPECT_EQ(row(outcomes[i]).state, WorkState::kInterrupted);
  EXPECT_THAT(row(outcomes[1]).iteration_seconds, ElementsAre(0.5));
  EXPECT_THAT(ranks_.starts(), SizeIs(1));
}

TEST_F(RunJobs, APlanForMoreRanksThanTheHostsOfferIsLeftOut) {
  requests_[1].job.plan.road = ParameterServer{1, Placement::kDedicated, Assignment::kEven};
  on_start(1,
           {turn(0), report_of({0.1}, 0), turn(1), report_of({0.3}, 1), Finished{nlohmann::json::object()}});
  const auto outcomes = run();
  EXPECT_THAT(outcomes[1].failure->what(), HasSubstr("is for 5 ranks, the hosts offer 4"));
  EXPECT_EQ(outcomes[1].run, 0);
  EXPECT_THAT(methods_of_start(0), ElementsAre("first", "third"));
}

}  // namespace
}  // namespace commtune::api
