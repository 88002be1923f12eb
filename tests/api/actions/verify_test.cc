#include "api/actions/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "api/actions/run.h"
#include "api/actions/tune.h"
#include "api/question/plan_lookup.h"
#include "api/view/outcome_json.h"
#include "api/wire/events.h"
#include "perfmodel/base/error.h"
#include "tests/api/actions/made_ranks.h"
#include "tests/api/rest/made_lab.h"
#include "tests/store/support.h"

namespace commtune::api {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(IterationsOfRun, LetFiveRoundsFitIntoTheBudget) {
  // 60 s / (5 rounds * 3 plans) = 4 s a run: 13 iterations of 300 ms, two of them to warm up.
  EXPECT_EQ(iterations_of_run({3, Seconds{60}}, Seconds{0.3}), 11);
  EXPECT_EQ(iterations_of_run({3, Seconds{60}}, Seconds{1e-3}), 20);
  EXPECT_EQ(iterations_of_run({3, Seconds{60}}, Seconds{100}), 3);
}

TEST(RanksOfJob, AreWorkersAndTheirServers) {
  Cluster cluster;
  cluster.hosts = {{"n1", 2}, {"n2", 2}};
  tuner::TuneOptions options;
  EXPECT_EQ(ranks_of_job(options, cluster), 4);
  options.limits.dedicated_servers = 1;
  EXPECT_EQ(ranks_of_job(options, cluster), 4);  // the servers are among the cluster's ranks then
  options.workers = 2;
  EXPECT_EQ(ranks_of_job(options, cluster), 3);
}

/// The made-up lab with a launcher that only says what a run took: 100 ms, and of the plan that was chosen by
/// prediction 200 ms.
class VerifyTest : public ::testing::Test {
 protected:
  VerifyTest() {
    make_lab(store_, profile_);
    question_.profile = profile_;
    question_.cluster.name = "lab";
    question_.draws = 0;
    TuneOutcome predicted = tune_job(context_, question_);
    predicted_ = predicted.answer.ranking.at(predicted.answer.chosen).method;
    question_.verify = tuner::VerifyLimits{.plans = 2};
    placing_.hosts = parse_host_list("n1:2,n2:2");
    settings_.mpirun = ranks_.program();
    ranks_.write("fast", run_of_seconds(0.1));
    ranks_.write("slow", run_of_seconds(0.2));
    launcher("cat '" + ranks_.file("slow") + "'");
  }

  /// for_predicted  what ranks do when the predicted plan is run
  void launcher(const std::string& for_predicted) {
    ranks_.for_plans("\"method\":\"" + predicted_ + "\"", for_predicted, "cat '" + ranks_.file("fast") + "'");
  }
  static std::string run_of_seconds(double seconds) {
    return lines_of({report_of({seconds, seconds, seconds})});
  }
  const tuner::Entry& entry(const TuneOutcome& outcome, const std::string& method) {
    return *std::ranges::find(outcome.answer.ranking, method, &tuner::Entry::method);
  }

  tests::TempFolder folder_;
  MadeRanks ranks_{folder_.path()};
  const Profile profile_ = tests::small_profile();
  Settings settings_ = [] {
    Settings settings;
    settings.start_timeout = settings.silence_timeout = settings.fit_age = Seconds{1000};
    return settings;
  }();
  Environment environment_;
  Store store_ = tests::memory_store();
  Cancellation cancellation_;
  std::vector<Progressed> progress_;
  Context context_{settings_, environment_, store_, cancellation_,
                   Listener{[this](const Progressed& progress) { progress_.push_back(progress); }, {}}};
  Question question_;
  Placing placing_;
  std::string predicted_;
};

TEST_F(VerifyTest, TheRunsChooseAndAreStored) {
  const TuneOutcome outcome = tune_job(context_, question_, placing_);
  const tuner::Entry& chosen = outcome.answer.ranking.at(outcome.answer.chosen);
  EXPECT_NE(chosen.method, predicted_);
  EXPECT_EQ(outcome.answer.verified->predicted, predicted_);
  EXPECT_EQ(outcome.answer.verified->end, tuner::VerifyEnd::kOneLeft);
  EXPECT_DOUBLE_EQ(chosen.measured->median.count(), 0.1);
  EXPECT_DOUBLE_EQ(entry(outcome, predicted_).measured->behind, 1);

  ASSERT_THAT(outcome.runs.at(predicted_), SizeIs(3));
  for (const RowId id : outcome.runs.at(predicted_)) {
    const auto run = store_.find_run(id);
    EXPECT_EQ(run->state, WorkState::kComplete);
    EXPECT_EQ(run->settings.at("workload"), "replay");
    EXPECT_EQ(run->plan, outcome.plans.at(predicted_));
    EXPECT_EQ(run->iteration_seconds, std::vector<double>(3, 0.2));
  }
}

TEST_F(VerifyTest, TheMeasuredAnswerIsStoredAfterThePredictedOne) {
  const TuneOutcome outcome = tune_job(context_, question_, placing_);
  const std::string chosen = outcome.answer.ranking.at(outcome.answer.chosen).method;
  const PlanRow latest = find_stored_plan(store_, "latest");
  EXPECT_EQ(latest.id, outcome.plans.at(chosen));
  EXPECT_EQ(latest.method, chosen);
  EXPECT_EQ(latest.ranking.at("answer").at("verified").at("predicted"), predicted_);
  EXPECT_EQ(latest.ranking.at("runs"), nlohmann::json(outcome.runs));
  const PlanRow before = store_.find_plan(outcome.plans.at(predicted_)).value();
  EXPECT_EQ(before.ranking.at("answer").at("chosen"), predicted_);
  EXPECT_FALSE(before.ranking.at("answer").contains("verified"));
  EXPECT_EQ(to_json(outcome).at("id"), latest.id);
  EXPECT_EQ(to_json(outcome).at("runs").at(predicted_), nlohmann::json(outcome.runs.at(predicted_)));
  EXPECT_THAT(find_jobs(context_, {"latest", {}, {}}, {"all"}), SizeIs(outcome.answer.ranking.size()));
}

TEST_F(VerifyTest, APlanThatCannotBeRunIsNotChosen) {
  const Failed failed{ErrorCode::kPeerLost, "rank 2 on n2 went away"};
  ranks_.write("failed", lines_of({failed}));
  launcher("cat '" + ranks_.file("failed") + "'; exit 1");
  const TuneOutcome outcome = tune_job(context_, question_, placing_);
  EXPECT_NE(outcome.answer.ranking.at(outcome.answer.chosen).method, predicted_);
  EXPECT_EQ(entry(outcome, predicted_).failure, failed.message);
  EXPECT_FALSE(outcome.runs.contains(predicted_));
  EXPECT_THAT(ranks_.starts(), SizeIs(2));  // those that the plan ended, and those for the others
}

TEST_F(VerifyTest, RanksAreStartedOnceForTheCheckAndAllRounds) {
  question_.check = Seconds{5};
  const TuneOutcome outcome = tune_job(context_, question_, placing_);
  ASSERT_TRUE(outcome.answer.checked()) << outcome.answer.check->failure;
  ASSERT_TRUE(outcome.answer.verified);
  EXPECT_THAT(ranks_.starts(), SizeIs(1));
  const auto rows = store_.runs().rows;  // and the one that the lab was made with
  EXPECT_GT(rows.size(), 4U);
  EXPECT_THAT(ranks_.told(), SizeIs(rows.size()));  // and the end
  std::set<std::string> groups;
  for (const auto& row : rows) {
    if (const auto run = store_.find_run(row.id); run->settings.contains("group"))
      groups.insert(run->settings.at("group").get<std::string>());
  }
  EXPECT_THAT(groups, SizeIs(1));
}

TEST_F(VerifyTest, StartsAsManyRanksAsThePlanWithMostServersNeeds) {
  question_.allocation.workers = 3;
  question_.allocation.limits.dedicated_servers = 1;
  tune_job(context_, question_, placing_);
  EXPECT_THAT(ranks_.starts(), Each(HasSubstr("-np 4 ")));
}

TEST_F(VerifyTest, PlansOfFewerRanksRunOnTheFirstOnes) {
  question_.allocation.workers = 2;
  const TuneOutcome outcome = tune_job(context_, question_, placing_);
  for (const auto& [method, runs] : outcome.runs) {
    for (const RowId id : runs) {
      EXPECT_THAT(store_.find_run(id)->hosts, SizeIs(1)) << method;
      EXPECT_EQ(store_.find_run(id)->hosts.front().slots, 2);
    }
  }
}

TEST_F(VerifyTest, HostsThatHaveTooFewRanksAreRefusedBeforeAnythingIsDone) {
  const auto before = store_.plans().rows.front().id;
  placing_.hosts = parse_host_list("n1:3");
  EXPECT_THAT(tests::error_of([&] { tune_job(context_, question_, placing_); }),
              tests::IsError(ErrorCode::kBadInput, "verify: the job has 4 ranks, the hosts offer 3"));
  (*question_.verify).plans = 1;
  EXPECT_THAT(tests::error_of([&] { tune_job(context_, question_, placing_); }),
              tests::IsError(ErrorCode::kBadInput, "plans = 1: must be at least 2"));
  EXPECT_EQ(store_.plans().rows.front().id, before);
}

TEST_F(VerifyTest, AnInterruptionEndsPlanningAndRunning) {
  // The launcher is interrupted by who waits for it: the button is pressed while the first plan runs.
  Context context{settings_, environment_, store_, cancellation_,
                  Listener{[this](const Progressed&) { cancellation_.cancel(); }, {}}};
  ranks_.write("slow", to_line(Progressed{"timing", 0.5, {}}) + "\n" + run_of_seconds(0.2));
  EXPECT_THAT(tests::error_of([&] { tune_job(context, question_, placing_); }),
              tests::IsError(ErrorCode::kInterrupted, "interrupted"));
  const auto stored = store_.plans().rows.front().id;
  EXPECT_THAT(tests::error_of([&] { tune_job(context, question_, placing_); }),
              tests::IsError(ErrorCode::kInterrupted, "while planning"));
  EXPECT_EQ(store_.plans().rows.front().id, stored);
}

TEST_F(VerifyTest, TellsHowMuchOfTheBudgetIsSpent) {
  ranks_.write("slow", to_line(Progressed{"timing", 0.5, {}}) + "\n" + run_of_seconds(0.2));
  tune_job(context_, question_, placing_);
  ASSERT_THAT(progress_, SizeIs(3));
  EXPECT_EQ(progress_.front().what, "verifying " + predicted_ + ": timing");
  EXPECT_LE(progress_.front().fraction, progress_.back().fraction);
  EXPECT_LE(progress_.back().left->count(), 60);
}

}  // namespace
}  // namespace commtune::api
