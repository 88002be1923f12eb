#include "tuner/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "api/view/answer_json.h"
#include "perfmodel/base/error.h"
#include "perfmodel/cost/stage_cost.h"
#include "perfmodel/shipped_profiles.h"
#include "perfmodel/simulate/simulate.h"
#include "tests/tuner/testbed.h"
#include "tuner/road_factors.h"

namespace commtune::tuner {
namespace {

using api::to_json;

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

void add_fit(Cluster& cluster, const Road& road, double beta, double deviation) {
  const bool ring = road == kRing;
  OperationFit fit{road, ring ? Operation::kAllReduce : Operation::kPushPull, 4, {}, {}};
  fit.alone.curve = Curve{Seconds{1e-3}, SecondsPerByte{beta * 1.1}};
  fit.streamed.curve = Curve{Seconds{1e-4}, SecondsPerByte{beta}};
  fit.alone.largest = fit.streamed.largest = 1024_MiB;
  fit.alone.deviation = fit.streamed.deviation = {deviation, deviation};
  cluster.operations.push_back(fit);
}

/// A ring that was fitted to be 5 % faster than servers, both in doubt of a tenth.
Cluster fitted_cluster() {
  Cluster cluster = made_cluster(4, 100e-6, 0.8e-9);
  add_fit(cluster, kRing, 2e-9, 0.1);
  add_fit(cluster, kServers, 2.1e-9, 0.1);
  return cluster;
}

/// The same where messages alone are dear for certain, so that no plan may be faster by those.
Cluster fitted_for_streams() {
  Cluster cluster = fitted_cluster();
  for (OperationFit& fit : cluster.operations) {
    fit.alone.curve = Curve{Seconds{2e-3}, SecondsPerByte{3 * fit.streamed.curve.pieces().back().beta.value}};
    fit.alone.deviation = {};
  }
  return cluster;
}

/// ResNet-50 on something fast, which hides little of what is sent.
Profile mostly_communication() {
  Profile profile = *shipped_profile("resnet50");
  for (Layer& layer : profile.layers) {
    for (Seconds* const time : {&layer.forward, &layer.backward, &layer.update}) *time = *time / 10;
  }
  return profile;
}

/// What plans take where the truth is another cluster than the fitted one.
class TrueTimes {
 public:
  TrueTimes(Cluster fitted, std::vector<RoadFactor> truth, Profile profile = *shipped_profile("resnet50"))
      : profile_(std::move(profile)), fitted_(std::move(fitted)), truth_(refitted(fitted_, truth, 4)) {
    tune_options_.roads = {kRing, kServers};
  }

  Answer tuned(const Cluster& cluster, const Trials& trials = {}) const {
    TuneOptions options = tune_options_;
    options.trials = trials;
    return tune(profile_, cluster, options);
  }

  CheckedAnswer checked(double budget = 100) {
    CheckOptions options;
    options.budget = Seconds{budget};
    options.measure = [this](const Entry& entry, Seconds share) { return run(entry.plan, share); };
    options.clock = [this] { return now_; };
    options.plan = [this](const Cluster& cluster, const Trials& trials) {
      ++plannings;
      return tuned(cluster, trials);
    };
    return check(tuned(fitted_), profile_, fitted_, options);
  }

  Seconds true_time(const Plan& plan) const {
    return simulate(Workload(profile_), plan, road_cost(plan.road, truth_, plan.workers)).iteration;
  }

  const Profile& profile() const { return profile_; }
  const Cluster& fitted() const { return fitted_; }
  TuneOptions& options() { return tune_options_; }

  std::vector<Road> order;      ///< roads as they were run
  std::vector<Seconds> shares;  ///< how long each run was to take
  int plannings = 0;            ///< after the first
  int fails_in_run = 0;
  ErrorCode failure = ErrorCode::kPeerLost;
  double late = 1;        ///< times longer takes the plan that is run first, by nothing that its road costs
  double scatter = 1e-4;  ///< between the iterations of a run

 private:
  std::vector<Seconds> run(const Plan& plan, Seconds share) {
    order.push_back(plan.road);
    shares.push_back(share);
    now_ += Seconds{1};
    if (static_cast<int>(order.size()) == fails_in_run) throw Error(failure, "rank 2 went away");
    if (order.size() == 1) first_ = digest(plan);
    const Seconds time = true_time(plan) * (digest(plan) == first_ ? late : 1);
    std::vector<Seconds> iterations;
    for (int i = -3; i <= 3; ++i) iterations.push_back(time * (1 + i * scatter / 3));
    return iterations;
  }

  Profile profile_;
  Cluster fitted_, truth_;
  TuneOptions tune_options_;
  std::string first_;  ///< digest of the plan that was run first
  Seconds now_{0};
};

const Entry& chosen(const Answer& answer) { return answer.ranking.at(answer.chosen); }

TEST(Check, ARoadThatCostsMoreThanWasFittedLosesItsFirstPlace) {
  TrueTimes runs(fitted_cluster(), {off_by(kRing, 1.4, 1.4)});
  EXPECT_EQ(chosen(runs.tuned(runs.fitted())).plan.road, kRing);
  const CheckedAnswer result = runs.checked();
  ASSERT_GE(runs.order.size(), 2U) << "and plans that may still be faster";
  EXPECT_THAT(std::vector(runs.order.begin(), runs.order.begin() + 2), ElementsAre(kRing, kServers));
  EXPECT_TRUE(result.answer.checked());
  EXPECT_EQ(chosen(result.answer).plan.road, kServers);
  const Check& check = *result.answer.check;
  ASSERT_THAT(check.plans, SizeIs(runs.order.size()));
  EXPECT_NEAR(check.plans[0].factor, 1.4, 0.01);
  EXPECT_EQ(check.plans[1].factor, 1);
  EXPECT_TRUE(check.changed);
  EXPECT_EQ(check.elapsed, Seconds{static_cast<double>(runs.order.size())});
  EXPECT_THAT(
      check_text(result.answer),
      ::testing::MatchesRegex("checked . plans by running them for ..00 s: all-to-all ring costs .* "
                              "times a start-up and .* times a byte what the probe said; .* instead of .*"));
}

TEST(Check, TheRefittedClusterPricesTheCheckedPlansAsMeasured) {
  TrueTimes runs(fitted_cluster(), {off_by(kRing, 1.4, 1.4), off_by(kServers, 0.8, 0.8)});
  const CheckedAnswer result = runs.checked();
  ASSERT_GE(result.plans.size(), 2U);
  for (std::size_t i = 0; i < result.plans.size(); ++i) {
    const Plan& plan = result.plans[i];
    const Seconds priced =
        simulate(Workload(runs.profile()), plan, road_cost(plan.road, result.cluster, 4)).iteration;
    EXPECT_NEAR(priced / result.answer.check->plans[i].measured, 1, 0.015) << describe(plan.road);
  }
  // The plans of a checked road are in no more doubt than measuring leaves.
  const Answer unchecked = runs.tuned(runs.fitted());
  const Doubt &before = *chosen(unchecked).doubt, &after = *chosen(result.answer).doubt;
  EXPECT_LT((after.high - after.low) / after.low, 0.7 * ((before.high - before.low) / before.low));
}

TEST(Check, ARoadPricedByFormulaIsRefittedToo) {
  Cluster cluster = fitted_cluster();
  cluster.operations.pop_back();
  cluster.formula_deviation = {0.3, 0.3};
  TrueTimes runs(cluster, {off_by(kServers, 1.5, 1.5)}, mostly_communication());
  const CheckedAnswer result = runs.checked();
  const auto& plans = result.answer.check->plans;
  const auto servers = std::ranges::find(plans, kServers, &CheckedPlan::road);
  ASSERT_NE(servers, plans.end());
  // The true road has curves of its own, of which 1.5 times the formula is not quite the form.
  EXPECT_NEAR(servers->factor, 1.5, 0.1);
  const Plan& plan = result.plans[static_cast<std::size_t>(servers - plans.begin())];
  const RoadCost by_formula = slower(road_cost(kServers, cluster, 4), servers->factor);
  EXPECT_NEAR(simulate(Workload(runs.profile()), plan, by_formula).iteration / servers->measured, 1, 0.01);
  const RoadCost cost = road_cost(kServers, result.cluster, 4);
  EXPECT_EQ(cost.basis, Basis::kMeasured);
  EXPECT_NEAR(simulate(Workload(runs.profile()), plan, cost).iteration / servers->measured, 1, 0.02);
}

TEST(Check, APlanThatHidesAllThatItSendsChangesNothing) {
  Cluster cluster = made_cluster(4, 1e-7, 1e-13);
  add_fit(cluster, kRing, 1e-12, 0.1);
  TrueTimes runs(cluster, {off_by(kRing, 1.4, 1.4)});
  runs.options().roads = {kRing};
  const Answer before = runs.tuned(cluster);
  const CheckedAnswer result = runs.checked();
  const Check& check = *result.answer.check;
  ASSERT_THAT(check.plans, SizeIs(1));
  EXPECT_TRUE(check.plans[0].hidden);
  EXPECT_EQ(check.plans[0].factor, 1);
  EXPECT_THAT(check.factors, SizeIs(0));
  EXPECT_FALSE(check.changed);
  EXPECT_TRUE(result.answer.checked());
  EXPECT_EQ(runs.plannings, 0);
  EXPECT_EQ(to_json(result.cluster), to_json(cluster));
  EXPECT_EQ(chosen(result.answer).prediction.iteration, chosen(before).prediction.iteration);
  EXPECT_THAT(check_text(result.answer), HasSubstr("tell nothing of its costs; "));
}

TEST(Check, TrafficThatTookLongerThanAPlanCanHideTellsOfItsCosts) {
  // Everything is hidden by prediction, and three times the costs are not.
  Cluster cluster = made_cluster(4, 1e-6, 0.1e-9);
  add_fit(cluster, kRing, 0.5e-9, 0.1);
  TrueTimes runs(cluster, {off_by(kRing, 3, 3)});
  runs.options().roads = {kRing};
  const Answer before = runs.tuned(cluster);
  const CheckedAnswer result = runs.checked();
  const CheckedPlan& plan = result.answer.check->plans.at(0);
  ASSERT_GT(plan.measured, 1.01 * plan.predicted);
  EXPECT_FALSE(plan.hidden);
  EXPECT_NEAR(plan.factor, 3, 0.03);
}

TEST(Check, ALateRunOfAPlanThatHidesAllTellsNothing) {
  // Only some five times the costs would make it 3 % longer: rather the run was late. By 40 % it was not,
  // where costs are in doubt.
  Cluster cluster = made_cluster(4, 1e-6, 0.05e-9);
  add_fit(cluster, kRing, 0.25e-9, 0.1);
  cluster = refitted(cluster, std::vector{off_by(kRing, 0.4, 0.4)}, 4);
  OperationFit& ring = cluster.operations.back();
  ring.alone.deviation = ring.streamed.deviation = {0.2, 0.2};
  cluster.plan_deviation = 0.022;
  const Profile profile = *shipped_profile("resnet50");
  TuneOptions options;
  options.roads = {kRing};
  const Answer answer = tune(profile, cluster, options);
  CheckedPlan late;
  late.measured = chosen(answer).prediction.iteration * 1.03;
  late.half_width = late.measured * 0.005;
  find_factor(late, chosen(answer).plan, profile, cluster);
  EXPECT_TRUE(late.hidden);
  EXPECT_EQ(late.factor, 1);
  late.measured = chosen(answer).prediction.iteration * 1.4;
  find_factor(late, chosen(answer).plan, profile, cluster);
  EXPECT_FALSE(late.hidden);
  EXPECT_GT(late.factor, 2);
}

TEST(Check, APlanThatIsLateForAnotherReasonIsRankedByWhatItTook) {
  // Only some five times the costs would make it 3 % longer, so that is no matter of the road's costs.
  Cluster cluster = made_cluster(4, 1e-6, 0.05e-9);
  add_fit(cluster, kRing, 0.25e-9, 0.1);
  cluster = refitted(cluster, std::vector{off_by(kRing, 0.4, 0.4)}, 4);
  cluster.plan_deviation = 0.022;
  TrueTimes runs(cluster, {});
  runs.options().roads = {kRing};
  runs.late = 1.03;
  CheckedAnswer result = runs.checked();
  const Check& check = *result.answer.check;
  ASSERT_THAT(check.plans, SizeIs(2));
  EXPECT_TRUE(check.plans[0].hidden);
  EXPECT_TRUE(check.changed);
  EXPECT_EQ(to_json(result.cluster), to_json(cluster));
  EXPECT_EQ(digest(chosen(result.answer).plan), check.plans[1].digest);
  const auto late = std::ranges::find_if(
      result.answer.ranking, [&](const Entry& entry) { return digest(entry.plan) == check.plans[0].digest; });
  ASSERT_NE(late, result.answer.ranking.end());
  EXPECT_NEAR(late->prediction.iteration / check.plans[0].measured, 1, 1e-5);  // its iterations scatter
  EXPECT_LT(late->doubt->low, check.plans[0].measured);
  EXPECT_GT(late->doubt->high, check.plans[0].measured);
  EXPECT_LT(late->doubt->high / late->doubt->low, 1.05);
  EXPECT_THAT(check_text(result.answer), HasSubstr(" took 1.03 times what its road's costs say; "));
  result.answer.check->factors.push_back(off_by(kServers, 1.2, 1.2));
  EXPECT_THAT(check_text(result.answer),
              AllOf(HasSubstr("colocated servers cost 1.20 times"), HasSubstr(" what the probe said, "),
                    HasSubstr(" took 1.03 times what its road's costs say; ")));
}

TEST(Check, APlanOfAMeasuredRoadThatMayBeFasterIsRunToo) {
  // What the first plan took leaves open whether start-ups or bytes are dear, so plans of more messages, or
  // fewer, may be better than they seem.
  Cluster cluster = made_cluster(4, 100e-6, 0.8e-9);
  add_fit(cluster, kRing, 2e-9, 0.1);
  OperationFit& ring = cluster.operations.back();
  ring.alone.curve = ring.streamed.curve = Curve{Seconds{2e-3}, SecondsPerByte{2e-9}};
  TrueTimes runs(cluster, {off_by(kRing, 2, 1.2)});
  runs.options().roads = {kRing};
  const CheckedAnswer result = runs.checked();
  const Check& check = *result.answer.check;
  ASSERT_GE(check.plans.size(), 2U);
  for (const Entry& entry : result.answer.ranking)
    EXPECT_LE(runs.true_time(chosen(result.answer).plan), runs.true_time(entry.plan) * 1.01) << entry.method;
}

TEST(Check, WhatTheMeasurementCannotTellFromThePredictionIsNoFactor) {
  TrueTimes runs(fitted_cluster(), {off_by(kRing, 1.02, 1.02)});
  runs.scatter = 0.05;
  const CheckedAnswer result = runs.checked();
  for (const CheckedPlan& plan : result.answer.check->plans) EXPECT_EQ(plan.factor, 1);
  EXPECT_THAT(check_text(result.answer), HasSubstr("their roads cost what the probe said; "));
  // Now that its road is in less doubt another plan may be chosen, of which nothing else is predicted.
  const Entry& after = chosen(result.answer);
  const RoadCost as_probed = road_cost(after.plan.road, runs.fitted(), 4);
  EXPECT_EQ(simulate(Workload(runs.profile()), after.plan, as_probed).iteration, after.prediction.iteration);
}

TEST(Check, FactorsEndAtFourTimes) {
  TrueTimes runs(fitted_cluster(), {off_by(kRing, 40, 40), off_by(kServers, 0.01, 0.01)});
  const CheckedAnswer result = runs.checked();
  EXPECT_NEAR(result.answer.check->plans[0].factor, 4, 1e-6);
  EXPECT_NEAR(result.answer.check->plans[1].factor, 0.25, 1e-6);
}

TEST(Check, WhereAMeasurementFailsTheAnswerStaysAndSaysWhy) {
  TrueTimes runs(fitted_cluster(), {off_by(kRing, 1.4, 1.4)});
  runs.fails_in_run = 2;
  const Answer before = runs.tuned(runs.fitted());
  const CheckedAnswer result = runs.checked();
  EXPECT_FALSE(result.answer.checked());
  EXPECT_EQ(result.answer.check->failure, "rank 2 went away");
  EXPECT_THAT(result.answer.check->plans, SizeIs(1));
  EXPECT_EQ(digest(chosen(result.answer).plan), digest(chosen(before).plan));
  EXPECT_EQ(to_json(result.cluster), to_json(runs.fitted()));
  const nlohmann::json json = to_json(result.answer);
  EXPECT_EQ(json.at("checked"), false);
  EXPECT_EQ(json.at("check").at("failure"), "rank 2 went away");
  EXPECT_EQ(json.at("check").at("changed"), false);
  EXPECT_EQ(check_text(result.answer), "not checked by running the leading plans: rank 2 went away");
}

TEST(Check, AnInterruptionIsNoFailureOfAPlan) {
  TrueTimes runs(fitted_cluster(), {});
  runs.fails_in_run = 1;
  runs.failure = ErrorCode::kInterrupted;
  EXPECT_THROW(runs.checked(), Error);
}

TEST(Check, ASpentBudgetEndsItAfterTheFirstPlan) {
  TrueTimes runs(fitted_cluster(), {off_by(kRing, 1.4, 1.4)});
  const CheckedAnswer result = runs.checked(0.5);
  EXPECT_THAT(runs.order, ElementsAre(kRing));
  // Servers would win by the factor alone; nobody ran them.
  EXPECT_EQ(chosen(result.answer).plan.road, kRing);
  EXPECT_THAT(result.answer.check->passed_over, HasSubstr("over 4 colocated servers"));
  EXPECT_THAT(check_text(result.answer), HasSubstr("over 4 colocated servers was not run)"));
  EXPECT_TRUE(result.answer.checked());
}

TEST(Check, TheBudgetIsSharedByTheRunsOfARound) {
  TrueTimes runs(fitted_cluster(), {});
  runs.checked(12);  // two thirds of it for the first round, of two plans
  ASSERT_GE(runs.shares.size(), 2U) << "and plans that may still be faster";
  EXPECT_THAT(std::vector(runs.shares.begin(), runs.shares.begin() + 2), ElementsAre(Seconds{4}, Seconds{4}));
}

TEST(Check, ANewRoadIsRunBeforeItIsChosen) {
  Cluster cluster = fitted_for_streams();
  cluster.operations.back().streamed.curve = Curve{Seconds{1e-4}, SecondsPerByte{2.7e-9}};
  for (OperationFit& fit : cluster.operations) fit.streamed.deviation = {0.01, 0.01};
  TrueTimes runs(cluster, {RoadFactor{kRing, {}, {1.6, 1.6}}});
  const CheckedAnswer result = runs.checked();
  // At first servers are out of the question; then they are the better road.
  EXPECT_THAT(runs.order, ElementsAre(kRing, kServers));
  EXPECT_EQ(runs.shares[1], Seconds{(100 - 1) * 2.0 / 3});
  EXPECT_EQ(runs.plannings, 2);
  EXPECT_EQ(chosen(result.answer).plan.road, kServers);
}

TEST(LeadingPlans, AreOfBothArchitecturesFirst) {
  Answer answer;
  for (const Road& road :
       {Road{ParameterServer{4}}, Road{ParameterServer{2}}, Road{ParameterServer{1}}, kRing}) {
    Entry& entry = answer.ranking.emplace_back();
    entry.plan.road = road;
  }
  EXPECT_EQ(leading_plans(answer), (std::vector<std::size_t>{0, 3, 1}));
}

TEST(Check, TheAnswerSaysWhatWasFound) {
  TrueTimes runs(fitted_cluster(), {off_by(kRing, 1.4, 1.4)});
  const CheckedAnswer result = runs.checked();
  const nlohmann::json json = to_json(result.answer);
  EXPECT_EQ(json.at("checked"), true);
  const nlohmann::json& check = json.at("check");
  EXPECT_EQ(check.at("changed"), true);
  EXPECT_EQ(check.at("before"), chosen(runs.tuned(runs.fitted())).method);
  EXPECT_EQ(check.at("plans")[0].at("road"), "all-to-all ring");
  EXPECT_NEAR(check.at("plans")[0].at("factor").get<double>(), 1.4, 0.01);
  EXPECT_LT(check.at("plans")[0].at("predicted_seconds"), check.at("plans")[0].at("measured_seconds"));
  EXPECT_FALSE(check.contains("failure"));
  EXPECT_EQ(to_json(runs.tuned(runs.fitted())).at("checked"), false);
}

TEST(Check, RefusesABudgetThatMakesNoSense) {
  TrueTimes runs(fitted_cluster(), {});
  EXPECT_THROW(runs.checked(0), Error);
  EXPECT_THROW(runs.checked(std::nan("")), Error);
  EXPECT_THAT(runs.order, SizeIs(0));
}

}  // namespace
}  // namespace commtune::tuner
