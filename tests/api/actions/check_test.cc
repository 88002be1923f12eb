#include "api/actions/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/actions/run.h"
#include "api/actions/tune.h"
#include "api/question/plan_lookup.h"
#include "api/view/outcome_json.h"
#include "api/view/sample_rows.h"
#include "api/wire/events.h"
#include "perfmodel/base/error.h"
#include "tests/api/actions/made_ranks.h"
#include "tests/api/rest/made_lab.h"
#include "tests/store/support.h"
#include "tuner/check.h"

namespace commtune::api {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(IterationsOfCheck, FillTheirShareOfTheBudget) {
  // 1.6 s less 0.4 s of launching: 12 iterations of 100 ms, one of them to warm up.
  EXPECT_EQ(iterations_of_check(Seconds{1.6}, Seconds{0.1}, Seconds{0.4}), 11);
  EXPECT_EQ(iterations_of_check(Seconds{1.6}, Seconds{1e-3}, Seconds{0}), 20);
  EXPECT_EQ(iterations_of_check(Seconds{1.6}, Seconds{10}, Seconds{0}), 3);
}

/// The made-up lab with a launcher that only says what a run took: all-reduce plans twice as long as the
/// best of them was predicted to take, others as long as the best of those.
class CheckTest : public ::testing::Test {
 protected:
  CheckTest() {
    make_lab(store_, profile_);
    question_.profile = profile_;
    question_.cluster.name = "lab";
    question_.keep = Keep::kAll;
    const TuneOutcome outcome = tune_job(context_, question_);
    unchecked_ = outcome.answer;
    fit_ = outcome.fit.value();
    question_.check = Seconds{5};
    placing_.hosts = parse_host_list("n1:2,n2:2");
    settings_.mpirun = ranks_.program();
    ranks_.write("all-to-all", run_of_seconds(2 * best_on<AllReduce>().count()));
    ranks_.write("servers", run_of_seconds(best_on<ParameterServer>().count()));
    launcher("cat '" + ranks_.file("all-to-all") + "'");
  }

  template <typename Kind>
  Seconds best_on() const {
    const auto found = std::ranges::find_if(unchecked_.ranking, [](const tuner::Entry& entry) {
      return std::holds_alternative<Kind>(entry.plan.road);
    });
    return found->prediction.iteration;
  }
  const tuner::Entry& chosen(const TuneOutcome& outcome) const {
    return outcome.answer.ranking.at(outcome.answer.chosen);
  }
  /// for_all_to_all  what ranks do when such a plan is run
  void launcher(const std::string& for_all_reduce) {
    ranks_.for_plans("\"all-to-all\"", for_all_reduce, "cat '" + ranks_.file("servers") + "'");
  }
  static std::string run_of_seconds(double seconds) {
    return lines_of({report_of({seconds * 0.999, seconds, seconds * 1.001})});
  }
  std::vector<probes::ProbeSample> plan_samples() const {
    std::vector<probes::ProbeSample> samples;
    for (const SampleRow& row : store_.all_samples(store_.find_fit(fit_)->session))
      if (row.kind == "plan") samples.push_back(from_row(row));
    return samples;
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
  Context context_{settings_, environment_, store_, cancellation_, {}};
  Question question_;
  Placing placing_;
  tuner::Answer unchecked_;
  RowId fit_ = 0;
};

TEST_F(CheckTest, TheAnswerRestsOnAFitOfItsOwn) {
  const TuneOutcome outcome = tune_job(context_, question_, placing_);
  ASSERT_TRUE(outcome.answer.checked()) << outcome.answer.check->failure;
  ASSERT_FALSE(outcome.answer.check->factors.empty());
  ASSERT_TRUE(outcome.fit);
  EXPECT_NE(*outcome.fit, fit_);
  const FitRow fit = store_.find_fit(*outcome.fit).value();
  EXPECT_EQ(fit.supersedes, fit_);
  EXPECT_EQ(fit.settings.at("checked").at("fit"), fit_);
  EXPECT_EQ(fit.settings.at("made"), "up");  // what the fit before it was made with
  const PlanRow latest = find_stored_plan(store_, "latest");
  EXPECT_EQ(latest.fit, outcome.fit);
  EXPECT_EQ(latest.ranking.at("answer").at("checked"), true);
  EXPECT_EQ(store_.current_fit("lab")->id, *outcome.fit);
  // It is as old as the probe was.
  EXPECT_EQ(fit.probed, store_.find_fit(fit_)->probed);
  EXPECT_EQ(fit.probed, store_.find_fit(fit_)->origin.created);
  // The next question is answered by the same costs.
  question_.check.reset();
  const TuneOutcome next = tune_job(context_, question_, placing_);
  EXPECT_EQ(next.fit, outcome.fit);
  EXPECT_FALSE(next.answer.checked());
}

TEST_F(CheckTest, WhatRunsToldIsKeptAsSamplesOfTheProbe) {
  const TuneOutcome outcome = tune_job(context_, question_, placing_);
  const tuner::Check& check = *outcome.answer.check;
  const auto samples = plan_samples();
  ASSERT_THAT(samples, SizeIs(check.plans.size()));
  for (std::size_t i = 0; i < samples.size(); ++i) {
    EXPECT_EQ(samples[i].quantity.road, check.plans[i].road);
    EXPECT_EQ(samples[i].quantity.workers, 4);
    EXPECT_EQ(samples[i].costs.plan, check.plans[i].digest);
    EXPECT_EQ(samples[i].costs.predicted, check.plans[i].predicted);
    EXPECT_EQ(samples[i].sample.time, check.plans[i].measured);
    EXPECT_EQ(samples[i].raw_seconds.size(), 3U);
    const auto of_road = std::ranges::find(check.factors, check.plans[i].road, &RoadFactor::road);
    ASSERT_NE(of_road, check.factors.end());
    EXPECT_EQ(samples[i].costs.alone, of_road->alone);
    EXPECT_EQ(samples[i].costs.streamed, of_road->streamed);
  }
  EXPECT_THAT(ranks_.starts(), SizeIs(1));
  // Each was run once, and can be looked at.
  EXPECT_THAT(store_.runs().rows, SizeIs(1 + check.plans.size()));
}

TEST_F(CheckTest, AnotherCheckBuildsOnTheFirst) {
  tune_job(context_, question_, placing_);
  const auto first = plan_samples();
  tune_job(context_, question_, placing_);
  const auto both = plan_samples();
  ASSERT_GT(both.size(), first.size());
  for (const auto& before : first) {
    const auto last = std::find_if(both.rbegin(), both.rend(), [&](const probes::ProbeSample& sample) {
      return sample.quantity.road == before.quantity.road;
    });
    // Its plans are predicted as they are measured by now, as near as they scatter.
    EXPECT_NEAR(last->costs.alone.rate, before.costs.alone.rate, 0.1 * before.costs.alone.rate);
    EXPECT_NEAR(last->costs.streamed.rate, before.costs.streamed.rate, 0.1 * before.costs.streamed.rate);
  }
}

TEST_F(CheckTest, WhereARunFailsTheAnswerStaysAndSaysWhy) {
  const Failed failed{ErrorCode::kPeerLost, "rank 2 on n2 went away"};
  ranks_.write("servers", lines_of({failed}));
  const std::string fail = "cat '" + ranks_.file("servers") + "'; exit 1";
  ranks_.for_plans("of no use", fail, fail);
  const TuneOutcome outcome = tune_job(context_, question_, placing_);
  EXPECT_FALSE(outcome.answer.checked());
  EXPECT_EQ(outcome.answer.check->failure, failed.message);
  EXPECT_EQ(outcome.fit, fit_);
  EXPECT_EQ(digest(chosen(outcome).plan), digest(unchecked_.ranking.at(unchecked_.chosen).plan));
  EXPECT_THAT(plan_samples(), SizeIs(0));
  EXPECT_EQ(find_stored_plan(store_, "latest").ranking.at("answer").at("checked"), false);
  EXPECT_EQ(to_json(outcome).at("check").at("failure"), failed.message);
}

TEST_F(CheckTest, HostsOfTooFewRanksLeaveTheAnswerUnchecked) {
  placing_.hosts = parse_host_list("n1:3");
  const TuneOutcome outcome = tune_job(context_, question_, placing_);
  EXPECT_FALSE(outcome.answer.checked());
  EXPECT_THAT(outcome.answer.check->failure, HasSubstr("4 ranks"));
}

TEST_F(CheckTest, AGivenClusterIsStoredWithItsCorrectedCosts) {
  question_.cluster.given = store_.current_fit("lab")->snapshot;
  const TuneOutcome outcome = tune_job(context_, question_, placing_);
  ASSERT_TRUE(outcome.answer.checked()) << outcome.answer.check->failure;
  EXPECT_FALSE(outcome.fit);
  EXPECT_NE(commtune::to_json(outcome.made.cluster), commtune::to_json(*question_.cluster.given));
  EXPECT_EQ(find_stored_plan(store_, "latest").ranking.at("cluster"),
            commtune::to_json(outcome.made.cluster));
  EXPECT_EQ(store_.current_fit("lab")->id, fit_);
}

TEST_F(CheckTest, WhatNoClusterIsCannotBeRun) {
  question_.overrides.bandwidth_scale = 2;
  EXPECT_THAT(tests::error_of([&] { tune_job(context_, question_, placing_); }),
              tests::IsError(ErrorCode::kBadInput, "overrides: "));
}

TEST_F(CheckTest, OneWorkerHasNothingToCheck) {
  question_.allocation.workers = 1;
  const TuneOutcome outcome = tune_job(context_, question_, placing_);
  EXPECT_FALSE(outcome.answer.check);
  EXPECT_EQ(to_json(outcome).at("checked"), false);
}

TEST_F(CheckTest, AnInterruptionEndsIt) {
  Context context{settings_, environment_, store_, cancellation_,
                  Listener{[this](const Progressed&) { cancellation_.cancel(); }, {}}};
  for (const char* name : {"all-to-all", "servers"})
    ranks_.write(name, to_line(Progressed{"timing", 0.5, {}}) + "\n" + run_of_seconds(0.2));
  EXPECT_THAT(tests::error_of([&] { tune_job(context, question_, placing_); }),
              tests::IsError(ErrorCode::kInterrupted, "interrupted"));
  EXPECT_EQ(store_.current_fit("lab")->id, fit_);
}

}  // namespace
}  // namespace commtune::api
