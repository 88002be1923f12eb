#include "api/question/fitted.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "api/actions/run.h"
#include "api/actions/tune.h"
#include "api/question/plan_lookup.h"
#include "api/question/plan_view.h"
#include "api/view/answer_json.h"
#include "api/view/outcome_json.h"
#include "api/view/row_json.h"
#include "perfmodel/base/error.h"
#include "tests/api/question/lab_test.h"

namespace commtune::api {
namespace {

using commtune::tests::error_of;
using commtune::tests::IsError;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

/// The made-up lab, which was probed over tcp, and then over another transport.
class FittedTest : public LabTest {
 protected:
  RowId probe_over(const std::string& transport, const std::function<void(Cluster&)>& change = {}) {
    Cluster cluster = store_.find_fit(1)->snapshot;
    cluster.transport = transport;
    if (change) change(cluster);
    const RowId session = store_.start_session({.cluster = store_.put_cluster(cluster)});
    store_.end_session(session, WorkState::kComplete);
    return store_.add_fit({session, cluster, nullptr});
  }
  Fitted fitted(const std::string& transport = {}) const {
    return find_fitted(store_, {"lab", {}, transport}, fit_age(settings_));
  }
};

TEST_F(FittedTest, OverOneTransportIsAsItsFitHasIt) {
  const Fitted found = fitted();
  EXPECT_EQ(found.fit, 1);
  EXPECT_TRUE(found.fits.empty());
  EXPECT_EQ(to_json(*found.cluster), to_json(store_.find_fit(1)->snapshot));
}

TEST_F(FittedTest, HasTheFitsOfAllTransports) {
  const RowId mpi = probe_over("mpi");
  const Fitted found = fitted();
  EXPECT_EQ(found.fit, mpi);
  EXPECT_EQ(found.fits, (FitIds{{"mpi", mpi}, {"tcp", 1}}));
  EXPECT_EQ(transports_of(*found.cluster), "mpi, tcp");
  EXPECT_EQ(describe_fit(found.fit, found.fits), fmt::format("fit {} (mpi), fit 1 (tcp)", mpi));
  EXPECT_EQ(fitted("tcp").fit, 1);
  EXPECT_TRUE(fitted("tcp").cluster->others.empty());
  EXPECT_THAT(error_of([&] { fitted("verbs"); }),
              IsError(ErrorCode::kNotFound, "transport verbs: cluster \"lab\" was probed over mpi, tcp"));
}

TEST_F(FittedTest, LeavesOutWhatWasMeasuredOnOtherMachines) {
  probe_over("mpi", [](Cluster& cluster) { cluster.facts["host.n1.cpu"] = "exchanged"; });
  EXPECT_TRUE(fitted().fits.empty());
  EXPECT_EQ(fitted().cluster->transport, "mpi");
}

TEST_F(FittedTest, TakesWhatOnlyOneTransportKnowsForNoDifference) {
  probe_over("mpi", [](Cluster& cluster) { cluster.facts["setting.OMPI_MCA_btl"] = "self,tcp"; });
  EXPECT_THAT(fitted().fits, SizeIs(2));
}

TEST_F(FittedTest, OfAFileIsOverWhatTheFileHas) {
  probe_over("mpi");
  const Cluster both = *fitted().cluster;
  EXPECT_EQ(transports_of(*given_cluster(both, "").cluster), "mpi, tcp");
  EXPECT_EQ(transports_of(*given_cluster(both, "tcp").cluster), "tcp");
  const auto shown = cluster_to_json(store_, *store_.find_cluster("lab"), fit_age(settings_), {});
  EXPECT_EQ(to_json(cluster_from_json(shown.at("current_fit").at("fit"))), to_json(both));
  EXPECT_THAT(shown.at("transports"), SizeIs(2));
}

TEST_F(FittedTest, PricesAPlanOverTheTransportThatItWants) {
  const RowId mpi = probe_over("mpi");
  Plan plan;
  EXPECT_EQ(fit_for_plan(store_, "lab", plan)->id, mpi);
  plan.transport = "tcp";
  EXPECT_EQ(fit_for_plan(store_, "lab", plan)->id, 1);
  plan.transport = "verbs";
  EXPECT_FALSE(fit_for_plan(store_, "lab", plan));
}

// --- answers --------------------------------------------------------------------------------------------

class AnswerOverBoth : public FittedTest {
 protected:
  AnswerOverBoth() { question_.keep = Keep::kAll; }
  TuneOutcome job() { return tune_job(context_, question_); }
  const RowId mpi_ = probe_over("mpi", [](Cluster& cluster) {
    for (OperationFit& fit : cluster.operations)
      for (Fit* each : {&fit.alone, &fit.streamed})
        each->curve = Curve(each->curve.pieces()[0].alpha * 3, each->curve.pieces()[0].beta);
  });
};

TEST_F(AnswerOverBoth, StoresEachPlanWithTheFitOfItsTransport) {
  const TuneOutcome outcome = job();
  EXPECT_EQ(outcome.plans.size(), outcome.answer.ranking.size());
  for (const auto& [method, id] : outcome.plans) {
    const PlanRow row = *store_.find_plan(id);
    EXPECT_EQ(row.fit, row.plan.transport == "mpi" ? mpi_ : 1) << method;
    EXPECT_THAT(method, ::testing::EndsWith("@" + row.plan.transport));
  }
}

TEST_F(AnswerOverBoth, LeadsFromTheChosenPlanToTheOthers) {
  const TuneOutcome outcome = job();
  const PlanRow chosen = find_stored_plan(store_, "latest");
  for (const tuner::Entry& entry : outcome.answer.ranking) {
    const PlanView view = view_plan(store_, chosen, entry.method);
    const Seconds predicted = predicted_iteration(view.plan, view.profile, view.cluster).prediction.iteration;
    EXPECT_NEAR(predicted / entry.prediction.iteration, 1, 1e-9) << entry.method;
  }
  const RankedMethod best_of_name = method_of(chosen, "wfbp-a2a");
  EXPECT_TRUE(best_of_name.method == "wfbp-a2a@tcp" || best_of_name.method == "wfbp-a2a@mpi");
  EXPECT_EQ(method_of(chosen, "wfbp-a2a@mpi").transport, "mpi");
}

TEST_F(AnswerOverBoth, ThatWasChangedCanBeMadeAgain) {
  question_.keep = Keep::kChosen;
  question_.allocation.nodes = "n1,n2";
  const TuneOutcome outcome = job();
  const PlanRow chosen = find_stored_plan(store_, "latest");
  const PlanView view = view_plan(store_, chosen, "wfbp-a2a@mpi");
  EXPECT_FALSE(view.id);
  EXPECT_EQ(view.plan.transport, "mpi");
}

TEST_F(AnswerOverBoth, MayBeOverOneOfThem) {
  question_.cluster.transport = "mpi";
  const TuneOutcome outcome = job();
  for (const tuner::Entry& entry : outcome.answer.ranking) EXPECT_EQ(entry.plan.transport, "");
  EXPECT_EQ(outcome.fit, mpi_);
  EXPECT_EQ(answer_to_json(outcome).at("transport"), "mpi");
}

TEST_F(AnswerOverBoth, SaysWhichTransportAndFits) {
  const TuneOutcome outcome = job();
  const nlohmann::json said = answer_to_json(outcome);
  EXPECT_EQ(said.at("transport"), outcome.chosen().plan.transport);
  EXPECT_EQ(said.at("fits"), nlohmann::json({{"mpi", mpi_}, {"tcp", 1}}));
}

TEST_F(AnswerOverBoth, IsRunOverWhatThePlanWants) {
  const TuneOutcome outcome = job();
  Placing placing;
  placing.network = "tcp";
  placing.subnet = "10.0.0.0/8";
  for (const auto& [method, id] : outcome.plans) {
    const PlannedJob job = find_jobs(context_, {std::to_string(id), {}, "lab"}, {}).front();
    EXPECT_EQ(job.over.network, job.plan.transport) << method;
    const Placing own = placing_for(placing, job);
    EXPECT_EQ(own.network, job.plan.transport);
    EXPECT_EQ(own.subnet, job.plan.transport == "tcp" ? "10.0.0.0/8" : "");
  }
  EXPECT_EQ(placing_for(placing, {}).network, "tcp");
}

// --- a transport that cannot be used --------------------------------------------------------------------

class UnusableTransport : public FittedTest {
 protected:
  UnusableTransport() { question_.keep = Keep::kAll; }
  RunRequest request_for(RowId plan) {
    RunRequest request;
    request.job = find_jobs(context_, {std::to_string(plan), {}, "lab"}, {}).front();
    request.placing.network = request.job.over.network.value();
    request.placing.hosts.hosts = {{"n1", 4}};
    return request;
  }
};

TEST_F(UnusableTransport, EndsARunWithTheNextPlanOfTheRanking) {
  probe_over("smoke", [](Cluster& cluster) {
    for (OperationFit& fit : cluster.operations)
      for (Fit* each : {&fit.alone, &fit.streamed}) each->curve = Curve(Seconds{1e-6}, SecondsPerByte{1e-10});
  });
  const TuneOutcome outcome = tune_job(context_, question_);
  ASSERT_EQ(outcome.chosen().plan.transport, "smoke");
  const auto next = std::ranges::find(outcome.answer.ranking, "tcp",
                                      [](const tuner::Entry& entry) { return entry.plan.transport; });
  const RowId chosen = outcome.plans.at(outcome.chosen().method);
  for (const auto& [method, plan] : outcome.plans) {
    if (!method.ends_with("@smoke")) continue;
    EXPECT_THAT(error_of([&, id = plan] { run_job(context_, request_for(id)); }),
                IsError(ErrorCode::kUnavailable,
                        fmt::format("; the next plan of its ranking goes over tcp: tune run {} --method {}",
                                    chosen, next->method)))
        << method;
  }
}

TEST_F(UnusableTransport, EndsARunWithoutAnotherPlanWhereThereIsNone) {
  probe_over("smoke", [](Cluster& cluster) { cluster.hosts = {{"n1", 4}}; });
  const TuneOutcome outcome = tune_job(context_, question_);
  EXPECT_THAT(error_of([&] { run_job(context_, request_for(outcome.plans.begin()->second)); }),
              IsError(ErrorCode::kUnavailable, "no plan of its ranking goes over another transport"));
}

TEST_F(UnusableTransport, EndsNoOtherRunOfTheSameCommand) {
  probe_over("smoke");
  const TuneOutcome outcome = tune_job(context_, question_);
  const RowId smoke = outcome.plans.at("bsp-a2a@smoke"), tcp = outcome.plans.at("bsp-a2a@tcp");
  std::vector<RunRequest> requests{request_for(smoke), request_for(tcp)};
  requests[1].placing.hosts.hosts = {{"n1", 3}};  // fails too, for a reason of its own
  const std::vector<RunOutcome> outcomes = run_jobs(context_, requests);
  EXPECT_THAT(outcomes.at(0).failure->what(), HasSubstr("transport smoke: this commtune does not have it"));
  EXPECT_THAT(outcomes.at(1).failure->what(), HasSubstr("is for 4 ranks, the hosts offer 3"));
}

}  // namespace
}  // namespace commtune::api
