#include "api/actions/run_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "perfmodel/base/error.h"
#include "perfmodel/plan.h"
#include "perfmodel/profile.h"
#include "tests/api/actions/made_ranks.h"
#include "tests/api/rest/made_lab.h"
#include "tests/store/support.h"

namespace commtune::api {
namespace {

using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::SizeIs;

/// Plans of the made-up lab on ranks that only say what a run took.
class RunSessionTest : public ::testing::Test {
 protected:
  RunSessionTest() {
    make_lab(store_, profile_);
    settings_.mpirun = ranks_.program();
    settings_.start_timeout = settings_.silence_timeout = Seconds{1000};
    ranks_.write("report", lines_of({Progressed{"timing", 0.5, {}}, report_of({0.1, 0.1, 0.1})}));
    ranks_.write("failed", lines_of({Found{"iteration", {{"plan", 0}, {"seconds", 0.25}}},
                                     Failed{ErrorCode::kPeerLost, "rank 2 on n2 went away"}}));
    ranks_.write(
        "refused",
        lines_of({Found{"refused", {{"plan", 0}, {"code", "bad_input"}, {"message", "no such road"}}}}));
    ranks_.for_plans("of no use", "false", "cat '" + ranks_.file("report") + "'");
  }

  RunRequest request(const std::string& method, const Road& road = AllReduce{}) {
    RunRequest request;
    request.job.plan = tests::small_plan(method);
    request.job.plan.workers = 3;
    request.job.plan.road = road;
    request.job.profile = profile_;
    request.job.plan_id =
        store_.add_plan({.plan = request.job.plan, .profile = store_.put_profile(profile_)});
    request.placing.hosts = parse_host_list("n1:2,n2:3");
    return request;
  }
  RunOutcome run(RunSession& session, const RunRequest& request) {
    return session.run(context_, request).outcome;
  }
  void on(const std::string& method, const std::string& file) {
    ranks_.for_plans("\"method\":\"" + method + "\"",
                     "cat '" + ranks_.file(file) + "'" + (file == "failed" ? "; exit 1" : ""),
                     "cat '" + ranks_.file("report") + "'");
  }

  const Profile profile_ = tests::small_profile();
  tests::TempFolder folder_;
  MadeRanks ranks_{folder_.path()};
  Settings settings_;
  Environment environment_;
  Store store_ = tests::memory_store();
  Cancellation cancellation_;
  Context context_{settings_, environment_, store_, cancellation_, {}};
};

TEST_F(RunSessionTest, RunsWhateverComesNextOnRanksThatAreStartedOnce) {
  {
    RunSession session(0);
    const RunSession::Ran first = session.run(context_, request("bsp-a2a"));
    EXPECT_GT(first.starting, Seconds{0});
    EXPECT_THAT(first.outcome.report.iteration_seconds, ElementsAre(0.1, 0.1, 0.1));
    // Any road may follow, over servers beside the workers too.
    const RunSession::Ran second = session.run(
        context_, request("bsp-ps", ParameterServer{3, Placement::kColocated, Assignment::kEven}));
    EXPECT_EQ(second.starting, Seconds{0});
    const auto row = store_.find_run(second.outcome.run);
    EXPECT_EQ(row->state, WorkState::kComplete);
    EXPECT_EQ(row->settings.at("group"), store_.find_run(first.outcome.run)->settings.at("group"));
    EXPECT_EQ(session.starts(), 1);
  }
  EXPECT_THAT(ranks_.starts(), ElementsAre(HasSubstr("-np 3 ")));
  EXPECT_EQ(ranks_.orders().at(0).at("order"), "session");
  EXPECT_THAT(ranks_.told(),
              ElementsAre(HasSubstr("bsp-a2a"), HasSubstr("bsp-ps"), HasSubstr("\"order\":\"end\"")));
}

TEST_F(RunSessionTest, APlanThatNeedsMoreRanksThanThereAreHasThemStartedAgain) {
  const ParameterServer servers{2, Placement::kDedicated, Assignment::kEven};
  RunSession session(4);
  run(session, request("bsp-a2a"));
  EXPECT_EQ(run(session, request("bsp-ps", servers)).report.iteration_seconds.size(), 3U);
  run(session, request("bsp-a2a"));
  EXPECT_THAT(ranks_.starts(), ElementsAre(HasSubstr("-np 4 "), HasSubstr("-np 5 ")));
  RunRequest most = request("bsp-ps", ParameterServer{3, Placement::kDedicated, Assignment::kEven});
  EXPECT_THAT(tests::error_of([&] { run(session, most); }),
              tests::IsError(ErrorCode::kBadInput, "is for 6 ranks, the hosts offer 5"));
  run(session, request("bsp-a2a"));
  EXPECT_EQ(session.starts(), 2);
}

TEST_F(RunSessionTest, WhatCannotShareASessionHasOneOfItsOwn) {
  RunSession session(0);
  run(session, request("bsp-a2a"));
  RunRequest other = request("bsp-a2a");
  other.options.chunk = Bytes{4096};
  run(session, other);
  EXPECT_EQ(session.starts(), 2);
  EXPECT_EQ(ranks_.orders().at(1).at("chunk_bytes"), 4096);
}

TEST_F(RunSessionTest, APlansLongestTransferIsItsSessions) {
  RunSession session(0);
  RunRequest probed = request("bsp-a2a");
  probed.job.traits = {.chunk = 1_MiB, .assumed = false};
  run(session, probed);
  EXPECT_EQ(ranks_.orders().at(0).at("chunk_bytes"), (1_MiB).count);
  EXPECT_THAT(ranks_.told(), ElementsAre(HasSubstr(R"("chunk_bytes":1048576)")));
}

TEST_F(RunSessionTest, APlanThatFailsEndsItselfOnly) {
  on("wfbp-a2a", "failed");
  RunSession session(0);
  const RowId before = run(session, request("bsp-a2a")).run;
  EXPECT_THAT(tests::error_of([&] { run(session, request("wfbp-a2a")); }),
              tests::IsError(ErrorCode::kPeerLost, "rank 2 on n2 went away"));
  const auto failed = store_.find_run(before + 1);
  EXPECT_EQ(failed->state, WorkState::kFailed);
  EXPECT_THAT(failed->iteration_seconds, ElementsAre(0.25));
  const RowId after = run(session, request("bsp-a2a")).run;
  EXPECT_EQ(store_.find_run(before)->state, WorkState::kComplete);
  EXPECT_EQ(store_.find_run(after)->state, WorkState::kComplete);
  EXPECT_EQ(store_.find_run(after)->settings.at("group"), failed->settings.at("group"));
  EXPECT_EQ(session.starts(), 2);
}

TEST_F(RunSessionTest, APlanThatIsRefusedLeavesTheRanksThere) {
  on("wfbp-a2a", "refused");
  RunSession session(0);
  EXPECT_THAT(tests::error_of([&] { run(session, request("wfbp-a2a")); }),
              tests::IsError(ErrorCode::kBadInput, "no such road"));
  run(session, request("bsp-a2a"));
  EXPECT_EQ(session.starts(), 1);
}

TEST_F(RunSessionTest, AnInterruptionKeepsWhatIsFinished) {
  RunSession session(0);
  const RowId finished = run(session, request("bsp-a2a")).run;
  // The button is pressed while a plan runs that would go on.
  ranks_.write("endless", lines_of({Progressed{"timing", 0.5, {}}}));
  on("wfbp-a2a", "endless");
  RunSession other(0);
  Context context{settings_, environment_, store_, cancellation_,
                  Listener{[this](const Progressed&) { cancellation_.cancel(); }, {}}};
  EXPECT_THAT(tests::error_of([&] { other.run(context, request("wfbp-a2a")); }),
              tests::IsError(ErrorCode::kInterrupted, "interrupted"));
  EXPECT_EQ(store_.find_run(finished)->state, WorkState::kComplete);
  EXPECT_EQ(store_.find_run(finished + 1)->state, WorkState::kInterrupted);
  EXPECT_THAT(tests::error_of([&] { other.run(context, request("bsp-a2a")); }),
              tests::IsError(ErrorCode::kInterrupted, "before anything was started"));
}

TEST_F(RunSessionTest, RanksThatEndWithoutAReportAreAFailure) {
  ranks_.for_plans("bsp", "cat '" + ranks_.file("last") + "'; exit 0", "false");
  RunSession session(0);
  EXPECT_THAT(tests::error_of([&] { run(session, request("bsp-a2a")); }),
              tests::IsError(ErrorCode::kUnavailable, "ended before they had reported"));
  EXPECT_THAT(store_.runs().rows, SizeIs(Gt(1U)));
}

}  // namespace
}  // namespace commtune::api
