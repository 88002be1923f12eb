#include "tuner/road_factors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "perfmodel/cost/road_factor.h"
#include "perfmodel/cost/stage_cost.h"
#include "perfmodel/shipped_profiles.h"
#include "perfmodel/simulate/simulate.h"
#include "perfmodel/simulate/workload.h"
#include "tests/tuner/testbed.h"
#include "tuner/methods/method.h"

namespace commtune::tuner {
namespace {

using ::testing::SizeIs;

/// A ring on which ResNet-50's 161 messages of its own cost their start-ups, and one of all its bytes;
/// streams half of what messages do alone.
Cluster made_ring(double deviation) {
  Cluster cluster = made_cluster(4, 100e-6, 0.8e-9);
  OperationFit fit{kRing, Operation::kAllReduce, 4, {}, {}};
  fit.alone.curve = Curve{Seconds{4e-3}, SecondsPerByte{4e-9}};
  fit.streamed.curve = Curve{Seconds{2e-3}, SecondsPerByte{2e-9}};
  fit.alone.largest = fit.streamed.largest = 1024_MiB;
  fit.alone.deviation = fit.streamed.deviation = {deviation, deviation};
  cluster.operations.push_back(fit);
  return cluster;
}

/// The same, where what a message takes alone is in no doubt.
Cluster made_ring_of_known_messages() {
  Cluster cluster = made_ring(0.1);
  cluster.operations[0].alone.deviation = {};
  return cluster;
}

/// The plan of a method.
Plan plan_of(const Profile& profile, const std::string& method) {
  TuneOptions options;
  options.roads = {kRing};
  const Answer answer = tune(profile, made_ring(0), options);
  for (const Entry& entry : answer.ranking) {
    if (entry.method == method) return entry.plan;
  }
  return {};
}

/// The same, whose messages do not wait for each other.
Plan streamed(Plan plan) {
  plan.credit = 1024_MiB;
  return plan;
}

/// What runs of these plans tell of the ring of this cluster where the truth is off by that.
std::vector<RoadFactor> told(const std::vector<Plan>& plans, const RoadFactor& off,
                             const Cluster& fitted = made_ring(0.1), double half_width = 1e-4) {
  const Profile profile = *shipped_profile("resnet50");
  const Cluster truth = refitted(fitted, std::vector{off}, 4);
  std::vector<CheckedPlan> checked;
  for (const Plan& plan : plans) {
    CheckedPlan& each = checked.emplace_back();
    each.measured = simulate(Workload(profile), plan, road_cost(kRing, truth, 4)).iteration;
    each.half_width = half_width * each.measured;
    find_factor(each, plan, profile, fitted);
  }
  return road_factors(checked, plans, profile, fitted);
}

class RoadFactorsTest : public ::testing::Test {
 protected:
  const Profile profile_ = *shipped_profile("resnet50");
  const Plan many_ = streamed(plan_of(profile_, "wfbp-a2a")), one_ = plan_of(profile_, "bsp-a2a");
};

TEST_F(RoadFactorsTest, TwoPlansTellStartUpsFromBytes) {
  const Plan few = streamed(plan_of(profile_, "ddp-25mib"));
  const auto factors = told({many_, few}, {kRing, {}, {1.8, 1.1}}, made_ring_of_known_messages());
  ASSERT_THAT(factors, SizeIs(1));
  const CostFactor& streamed = factors[0].streamed;
  EXPECT_NEAR(streamed.startup, 1.8, 0.05);
  EXPECT_NEAR(streamed.rate, 1.1, 0.02);
  EXPECT_LT(streamed.deviation.startup, 0.05);
  EXPECT_LT(streamed.deviation.rate, 0.05);
}

TEST_F(RoadFactorsTest, OnePlanLeavesOpenWhichOfThemIsOff) {
  const auto factors = told({many_}, {kRing, {}, {1.8, 1.1}});
  ASSERT_THAT(factors, SizeIs(1));
  const CostFactor& streamed = factors[0].streamed;
  // Many small messages: rather their start-ups.
  EXPECT_GT(streamed.startup, streamed.rate);
  EXPECT_TRUE(streamed.deviation.opposed);
  // That plan is predicted as it was measured, and the other one's truth is within what is left open.
  EXPECT_GT(streamed.rate * std::exp(2 * streamed.deviation.rate), 1.1);
  EXPECT_LT(streamed.rate * std::exp(-2 * streamed.deviation.rate), 1.1);
}

TEST_F(RoadFactorsTest, AFitThatWasRightIsInLessDoubt) {
  const auto factors = told({one_}, {kRing, {}, {}});
  ASSERT_THAT(factors, SizeIs(1));
  const CostFactor& alone = factors[0].alone;
  EXPECT_EQ(alone.startup, 1);
  EXPECT_EQ(alone.rate, 1);
  // One message of all bytes tells what a byte costs alone, and next to nothing of start-ups, or streams.
  EXPECT_LT(alone.deviation.rate, 0.02);
  EXPECT_NEAR(alone.deviation.startup, 0.1, 0.02);
  EXPECT_NEAR(factors[0].streamed.deviation.rate, 0.1, 0.02);
}

/// The ring whose messages alone take so many times what they take in streams.
Cluster made_ring_alone(double times) {
  Cluster cluster = made_ring(0.1);
  OperationFit& fit = cluster.operations[0];
  fit.alone.curve = Curve{times * Seconds{2e-3}, SecondsPerByte{times * 2e-9}};
  return cluster;
}

TEST_F(RoadFactorsTest, AStreamThatHidesMuchTellsLittleOfMessagesAlone) {
  const auto factors = told({many_}, {kRing, {}, {1.3, 1.3}}, made_ring_alone(20));
  ASSERT_THAT(factors, SizeIs(1));
  EXPECT_GT(factors[0].streamed.startup, 1.2);
  EXPECT_NEAR(factors[0].alone.startup, 1, 0.05);
  EXPECT_NEAR(factors[0].alone.rate, 1, 0.05);
}

TEST_F(RoadFactorsTest, AStreamThatHidesNothingTellsOfMessagesAlone) {
  const auto factors = told({many_}, off_by(kRing, 1.3, 1.3), made_ring_alone(1));
  ASSERT_THAT(factors, SizeIs(1));
  EXPECT_GT(factors[0].streamed.startup, 1.2);
  EXPECT_NEAR(factors[0].alone.startup, factors[0].streamed.startup, 0.02);
  EXPECT_NEAR(factors[0].alone.rate, factors[0].streamed.rate, 0.02);
}

TEST_F(RoadFactorsTest, WhereStreamsWouldHaveToCostMoreThanMessagesAloneAllAreOff) {
  // Nobody doubts what messages alone take, and the plan took longer than if each had been alone.
  const Cluster fitted = made_ring_of_known_messages();
  const RoadFactor truth = off_by(kRing, 3, 3);
  const auto factors = told({many_}, truth, fitted);
  ASSERT_THAT(factors, SizeIs(1));
  const Workload work(profile_);
  const auto time = [&](const RoadFactor& factor) {
    const Cluster cluster = refitted(fitted, std::vector{factor}, 4);
    return simulate(work, many_, road_cost(kRing, cluster, 4)).iteration;
  };
  EXPECT_NEAR(time(factors[0]) / time(truth), 1, 0.02);
}

TEST_F(RoadFactorsTest, APlanThatIsFarOffRaisesNoDoubtBeyondTheLargestFactor) {
  // Streams are off by sixty of their standard deviations; what a byte takes alone was in doubt before.
  Cluster fitted = made_ring_alone(20);
  OperationFit& fit = fitted.operations[0];
  fit.streamed.deviation = {0.02, 0.02};
  fit.alone.deviation = {0.02, 0.4};
  const auto factors = told({many_}, {kRing, {}, {3, 3}}, fitted);
  ASSERT_THAT(factors, SizeIs(1));
  EXPECT_GT(factors[0].streamed.startup, 2.5);
  EXPECT_GT(factors[0].streamed.deviation.rate, 0.1) << "start-ups or bytes";
  EXPECT_LE(factors[0].alone.deviation.rate, std::log(4) / 1.96 + 1e-9);
}

TEST_F(RoadFactorsTest, WherePlansMayTakeMoreThanAnyOperationSaysAllMayBeOff) {
  Cluster fitted = made_ring(0.02);
  fitted.plan_deviation = 0.2;
  const auto factors = told({many_}, off_by(kRing, 1.3, 1.3), fitted);
  ASSERT_THAT(factors, SizeIs(1));
  // Half of it is the plan's own.
  EXPECT_NEAR(factors[0].streamed.startup, 1.14, 0.03);
  EXPECT_NEAR(factors[0].alone.rate, 1.14, 0.03);
  EXPECT_LT(factors[0].alone.deviation.rate, 0.05) << "what they share stays plan_deviation's";
}

/// What two plans of few messages tell, which no start-ups tell apart: one as predicted, and one that takes
/// so many times as long.
RoadFactor told_by_two(double factor) {
  const Profile profile = *shipped_profile("resnet50");
  Cluster cluster = made_ring(0.03);
  cluster.plan_deviation = 0.022;
  const std::vector<Plan> plans{plan_of(profile, "bsp-a2a"), plan_of(profile, "ddp-25mib")};
  std::vector<CheckedPlan> checked;
  for (const Plan& plan : plans) {
    CheckedPlan& each = checked.emplace_back();
    each.measured = simulate(Workload(profile), plan, road_cost(kRing, cluster, 4)).iteration;
    if (checked.size() > 1) each.measured = factor * each.measured;
    each.half_width = 1e-3 * each.measured;
    find_factor(each, plan, profile, cluster);
  }
  return road_factors(checked, plans, profile, cluster).at(0);
}

TEST_F(RoadFactorsTest, PlansThatDisagreeByWhatIsTheirOwnMoveNoCostFar) {
  const RoadFactor told = told_by_two(1.04);
  for (const CostFactor& factor : {told.alone, told.streamed}) {
    EXPECT_NEAR(factor.startup, 1, 0.15);
    EXPECT_NEAR(factor.rate, 1.02, 0.03);
  }
}

TEST_F(RoadFactorsTest, APlanThatContradictsAnotherIsAnOutlier) {
  for (const double factor : {0.8, 0.9, 1.15, 1.3}) {
    const RoadFactor told = told_by_two(factor);
    for (const CostFactor& each : {told.alone, told.streamed}) {
      EXPECT_NEAR(std::log(each.startup), 0, 0.1) << factor;
      EXPECT_NEAR(std::log(each.rate), 0, 0.1) << factor;
    }
  }
}

TEST_F(RoadFactorsTest, WhatAnEarlierPlanToldStays) {
  Cluster cluster = made_ring(0.1);
  cluster.operations[0].alone.deviation = cluster.operations[0].streamed.deviation = {0.4, 0.001, true};
  CheckedPlan late;
  const Cluster truth = refitted(cluster, std::vector{off_by(kRing, 1.5, 1)}, 4);
  late.measured = simulate(Workload(profile_), many_, road_cost(kRing, truth, 4)).iteration;
  late.half_width = 1e-4 * late.measured;
  find_factor(late, many_, profile_, cluster);
  const auto factors = road_factors(std::vector{late}, std::vector{many_}, profile_, cluster);
  ASSERT_THAT(factors, SizeIs(1));
  EXPECT_NEAR(factors[0].streamed.startup, 1.5, 0.05);
  EXPECT_NEAR(factors[0].streamed.rate, 1, 0.02);
}

TEST_F(RoadFactorsTest, OfAFitThatIsHardlyInDoubtARunTellsAsMuchAsItIsWorth) {
  const Cluster cluster = made_ring(0.01);
  const Workload work(profile_);
  const Seconds predicted = simulate(work, one_, road_cost(kRing, cluster, 4)).iteration;
  // The part of the lateness of a run that costs are blamed for.
  const auto blamed = [&](double late) {
    CheckedPlan checked;
    checked.measured = (1 + late) * predicted;
    checked.half_width = 1e-4 * checked.measured;
    find_factor(checked, one_, profile_, cluster);
    const auto factors = road_factors(std::vector{checked}, std::vector{one_}, profile_, cluster);
    const RoadCost cost = road_cost(kRing, refitted(cluster, factors, 4), 4);
    return (simulate(work, one_, cost).iteration / predicted - 1) / late;
  };
  EXPECT_GT(blamed(0.02), 0.1);
  EXPECT_LT(blamed(0.02), 0.6) << "another run takes 1 % more or less";
  EXPECT_GT(blamed(0.5), 0.9) << "but not that much";
}

}  // namespace
}  // namespace commtune::tuner
