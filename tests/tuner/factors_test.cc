#include "tuner/factors.h"
#include "perfmodel/cost/stage_cost.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "perfmodel/shipped_profiles.h"
#include "tests/tuner/testbed.h"
#include "tuner/doubt.h"
#include "tuner/messages.h"
#include "tuner/race.h"

namespace commtune::tuner {
namespace {

using ::testing::Each;
using ::testing::SizeIs;

/// Four hosts whose plans take by this relative deviation more or less than they are predicted to.
Cluster unsure_of_plans(double deviation, double slower = 1) {
  Cluster cluster = made_cluster(4, 200e-6, 8e-9 * slower);
  cluster.plan_deviation = deviation;
  return cluster;
}

Answer ranked(const Cluster& cluster) { return tune(*shipped_profile("resnet50"), cluster); }

TEST(Responses, AreNoneWhereNothingIsInDoubt) {
  const Answer answer = ranked(made_cluster(4, 200e-6, 8e-9));
  for (const Entry& entry : answer.ranking) {
    EXPECT_NEAR(entry.doubt->low / entry.prediction.iteration, 1, 1e-9) << entry.method;
    EXPECT_NEAR(entry.doubt->high / entry.prediction.iteration, 1, 1e-9) << entry.method;
    EXPECT_EQ(entry.doubt->optimism, 0) << entry.method;
  }
}

TEST(Responses, WhatIsHiddenHardlyMatters) {
  const Profile profile = *shipped_profile("resnet50");
  const Cluster fast = unsure_of_plans(0.05, 1e-3), slow = unsure_of_plans(0.05, 10);
  const auto most = [&](const Cluster& cluster) {
    const Planning job(profile, cluster, 4, {AllReduce{}});
    TuneOptions options;
    options.roads = {AllReduce{}};
    const Answer answer = tune(profile, cluster, options);
    return responses(answer.ranking, comparable_times(answer.ranking, job), job, cluster, {}).front().more;
  };
  EXPECT_LT(most(fast), 0.002);
  // Nearly all of the iteration is traffic, which takes e^(1.645 * 5 %) times as long.
  EXPECT_NEAR(most(slow), 1.645 * 0.05, 0.01);
}

TEST(ErrorsOf, MessagesAloneAndStreamsAreOffByWhatEachMayBe) {
  RoadCost cost;
  cost.deviation = {{0.03, 0.02}, {0.3, 0.1}};
  const auto together = errors_of(cost, 0.04);
  ASSERT_THAT(together, SizeIs(1));
  EXPECT_DOUBLE_EQ(together[0].alone.startup, 0.05);
  EXPECT_DOUBLE_EQ(together[0].streamed.rate, std::hypot(0.1, 0.04));
  cost.deviation.streamed.opposed = true;
  const auto apart = errors_of(cost, 0.04);
  ASSERT_THAT(apart, SizeIs(2));
  EXPECT_EQ(apart[0].alone.rate, 0.02);
  EXPECT_EQ(apart[0].streamed.startup, 0.3);
  EXPECT_EQ(apart[0].streamed.rate, -0.1) << "where one is more, the other is less";
  EXPECT_EQ(apart[1].alone.startup, 0.04);
  EXPECT_EQ(apart[1].streamed.rate, 0.04);
}

TEST(ExpectedTime, IsHigherOnARoadThatIsInDoubt) {
  // Two roads, of which the faster one by 2 % may as well take 2.5 times as long, or the inverse of it.
  Cluster cluster = made_cluster(4, 100e-6, 8e-9);
  const Road halving = AllReduce{Collective::kHalvingDoubling};
  const auto roads_of_methods = [&](double deviation) {
    cluster.operations = {all_reduce(kRing, 20e-9, 0), all_reduce(halving, 19.6e-9, deviation)};
    TuneOptions options;
    options.roads = {kRing, halving};
    std::vector<Road> roads;
    for (const Entry& entry : tune(*shipped_profile("resnet50"), cluster, options).ranking) {
      if (entry.method != "joint") roads.push_back(entry.plan.road);  // whose search is by prices as they are
    }
    return roads;
  };
  EXPECT_THAT(roads_of_methods(0.05), Each(halving));
  EXPECT_THAT(roads_of_methods(0.9), Each(kRing));
}

TEST(Factors, TheRangeHoldsWhatTheDeviationSays) {
  const Answer answer = ranked(unsure_of_plans(0.03, 10));
  const Entry& fused = *std::ranges::find(answer.ranking, "bsp-a2a", &Entry::method);
  const double exposed = fused.prediction.exposed / fused.prediction.iteration;
  EXPECT_NEAR(fused.doubt->high / fused.prediction.iteration - 1, exposed * 1.645 * 0.03, 0.012);
  EXPECT_NEAR(1 - fused.doubt->low / fused.prediction.iteration, exposed * 1.645 * 0.03, 0.012);
}

TEST(Factors, PlansOfARoadShareItsPartAndNoOther) {
  std::vector<Entry> ranking(3);
  for (Entry& entry : ranking) entry.prediction.iteration = Seconds{1};
  ranking[0].plan.credit = 1_MiB;
  ranking[1].plan.credit = 2_MiB;
  ranking[2].plan.road = ParameterServer{4};
  const Response response{true, 0.36, -0.08, 0.08};
  constexpr std::size_t kDraws = 4000;
  const Times drawn = with_factors({{1.0}, {1.0}, {1.0}}, ranking, {response, response, response}, kDraws, 1);
  const auto correlation = [&](std::size_t i, std::size_t j) {
    double product = 0, square_i = 0, square_j = 0;
    for (std::size_t d = 0; d < kDraws; ++d) {
      const double a = std::log(drawn[i][d]), b = std::log(drawn[j][d]);
      product += a * b;
      square_i += a * a;
      square_j += b * b;
    }
    return product / std::sqrt(square_i * square_j);
  };
  EXPECT_NEAR(correlation(0, 1), 0.64, 0.05);
  EXPECT_NEAR(correlation(0, 2), 0, 0.05);
}

TEST(Factors, EqualPlansTakeEqualTimes) {
  std::vector<Entry> ranking(2);
  const Response response{true, 0.36, -0.08, 0.08};
  const Times drawn = with_factors({{1.0}, {1.0}}, ranking, {response, response}, 10, 1);
  EXPECT_EQ(drawn[0], drawn[1]);
}

/// Two roads, of which the one is predicted to be 1 % faster and is in so much more doubt.
Decision between(double doubt_of_faster) {
  Cluster cluster = made_cluster(4, 0, 1e-9);
  for (const auto& [road, factor, deviation] :
       {std::tuple(Road{AllReduce{}}, 1.0, 0.01),
        std::tuple(Road{ParameterServer{4}}, 0.99, doubt_of_faster)}) {
    const bool ring = std::holds_alternative<AllReduce>(road);
    OperationFit fit{road, ring ? Operation::kAllReduce : Operation::kPushPull, 4, {}, {}};
    fit.alone.curve = fit.streamed.curve = Curve{Seconds{0}, SecondsPerByte{2e-9 * factor}};
    fit.alone.largest = fit.streamed.largest = 1024_MiB;
    fit.alone.deviation = fit.streamed.deviation = {deviation, deviation};
    cluster.operations.push_back(fit);
  }
  Profile profile;
  profile.model = "made";
  profile.layers = {{"all", Seconds{0.001}, Seconds{0.001}, Seconds{0}, {{"large", 95'000'000_B}}, 0}};
  const Planning job(profile, cluster, 4, {AllReduce{}, ParameterServer{4}});
  std::vector<Entry> ranking(2);
  Simulator simulator(job.work);
  for (std::size_t i = 0; i < 2; ++i) {
    ranking[i].plan = job.empty_plan(i == 0 ? Road{ParameterServer{4}} : Road{AllReduce{}});
    ranking[i].plan.messages = {{{{0, 0_B, 95'000'000_B}}}};
    ranking[i].plan.credit = kUnlimited;
    ranking[i].method = i == 0 ? "wfbp-ps" : "wfbp-a2a";
    ranking[i].messages = 1;
    ranking[i].prediction = simulator.run(ranking[i].plan, road_cost(ranking[i].plan.road, cluster, 4));
  }
  judge_under_doubt(ranking, job, cluster, 64, 1);
  return decide(ranking);
}

TEST(Decide, TakesTheSurerOfTwoRoadsThatAreAboutAsFast) {
  EXPECT_EQ(between(0.01).chosen, 0U);
  const Decision decision = between(0.2);
  EXPECT_EQ(decision.chosen, 1U);
  EXPECT_FALSE(decision.clear);
}

TEST(Tune, TheChosenPlansRangeIsRaisedByItsOptimism) {
  int raised = 0;
  for (const double slower : {0.5, 1.0, 2.0, 4.0, 8.0, 16.0}) {
    const Answer answer = ranked(unsure_of_plans(0.05, slower));
    const Doubt& chosen = *answer.ranking[answer.chosen].doubt;
    if (chosen.optimism == 0) continue;  // hardly ever the fastest, and chosen as the surer or simpler one
    ++raised;
    const Answer sure = ranked(unsure_of_plans(0.001, slower));
    EXPECT_GT(chosen.optimism, sure.ranking[sure.chosen].doubt->optimism) << slower;
    EXPECT_GT(chosen.high / answer.ranking[answer.chosen].prediction.iteration, 1 + chosen.optimism)
        << slower;
  }
  EXPECT_GT(raised, 0);
}

}  // namespace
}  // namespace commtune::tuner
