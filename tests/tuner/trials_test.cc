#include "tuner/trials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "perfmodel/base/error.h"
#include "perfmodel/shipped_profiles.h"
#include "tests/tuner/testbed.h"
#include "tuner/tuner.h"

namespace commtune::tuner {
namespace {

const Road kTree = AllReduce{Collective::kDoubleBinaryTree};

Answer answer_after(const Trials& trials) {
  TuneOptions options;
  options.roads = {kRing, kTree, kServers};
  options.trials = trials;
  return tune(*shipped_profile("resnet50"), made_cluster(4, 200e-6, 1e-9), options);
}

PlanTime run_of(const Entry& entry, double times_longer, Seconds late = {}) {
  return {entry.plan, digest(entry.plan), entry.prediction.iteration * times_longer, {}, late};
}

TEST(Trials, ARunIsBelievedAsFarAsItIsBeyondItsOwnScatter) {
  const auto expected = [](double measured, double half_width) {
    return expected_after_run(Seconds{1}, Seconds{measured}, Seconds{half_width}).count();
  };
  EXPECT_EQ(expected(1.1, 0), 1.1);
  EXPECT_EQ(expected(0.9, 0), 0.9);
  EXPECT_EQ(expected(1.001, 0), 1) << "nobody would notice";
  EXPECT_EQ(expected(1.1, 0.2), 1) << "within a standard deviation";
  EXPECT_NEAR(expected(1.1, 0.098), 1 + 0.1 * (1 - 0.25), 1e-4) << "two of them away";
}

TEST(Trials, ALatePlanDelaysTheOthersOfItsRoadByHalf) {
  const Answer before = answer_after({});
  const Entry& late = entry_of(before, "ddp-25mib");
  const PlanTime run = run_of(late, 1.1, Seconds{0.02});
  const RoadDelay own = delay_on(road_of(late.plan), {run});
  EXPECT_NEAR(own.mean.count(), 0.01, 1e-12);
  EXPECT_NEAR(own.deviation.count(), 0.02 / std::sqrt(12), 1e-12);
  const RoadDelay of_two = delay_on(road_of(late.plan), {run, run});
  EXPECT_NEAR(of_two.mean.count(), 0.04 / 3, 1e-12) << "what they have in common";
  EXPECT_EQ(delay_on({kServers}, {run}).mean, Seconds{0}) << "of the other architecture";
  EXPECT_EQ(delay_on({AllReduce{Collective::kOneShot}}, {run}).mean, own.mean) << "none of it was run";
  const PlanTime on_time = run_of(entry_of(before, "bsp-a2a"), 1);
  PlanTime on_tree = on_time;
  on_tree.plan.road = kTree;
  EXPECT_EQ(delay_on({kTree}, {run, on_tree}).mean, Seconds{0}) << "its own was on time";
}

TEST(Trials, PredictionsHoldTheDelayAndItsDoubt) {
  const Answer before = answer_after({});
  const Entry& late = entry_of(before, "ddp-25mib");
  const Answer after = answer_after({{run_of(late, 1.1, Seconds{0.02})}});
  EXPECT_NEAR(entry_of(after, "ddp-25mib").prediction.iteration / late.prediction.iteration, 1.1, 1e-9);
  const Entry &fused = entry_of(before, "horovod-128mib"), &delayed = entry_of(after, "horovod-128mib");
  ASSERT_EQ(fused.plan.road, late.plan.road);
  ASSERT_EQ(delayed.plan.road, late.plan.road);
  EXPECT_NEAR((delayed.prediction.iteration - fused.prediction.iteration).count(), 0.01, 1e-9);
  const double far = 1.645 * 0.02 / std::sqrt(12);
  EXPECT_NEAR((delayed.doubt->high - delayed.prediction.iteration).count(), far, 0.3 * far);
  EXPECT_NEAR((delayed.prediction.iteration - delayed.doubt->low).count(), far, 0.3 * far);
  EXPECT_GT(delayed.doubt->at_upper_limits, delayed.prediction.iteration + Seconds{0.9 * far});
  EXPECT_EQ(entry_of(after, "ipart").prediction.iteration, entry_of(before, "ipart").prediction.iteration);
}

TEST(Trials, APlanThatWasNotRunHasToBeSoMuchFaster) {
  const Answer before = answer_after({});
  const Entry &best = before.ranking.at(before.chosen), &tried = entry_of(before, "ddp-25mib");
  const double faster = tried.prediction.iteration / best.prediction.iteration - 1;
  ASSERT_GT(faster, 0.01);
  Trials trials{{run_of(tried, 1)}, {}, 1.1 * faster};
  const auto chosen_after = [](const Trials& with) {
    const Answer answer = answer_after(with);
    return answer.ranking.at(answer.chosen).method;
  };
  EXPECT_EQ(chosen_after(trials), "ddp-25mib");
  trials.untried = 0.5 * faster;
  EXPECT_EQ(chosen_after(trials), best.method);
}

TEST(Trials, AMethodKeepsThePlanThatWasRunWhileNoOtherIsFaster) {
  const Answer before = answer_after({});
  Entry worse = entry_of(before, "ipart");
  const Entry other = entry_of(before, "bytescheduler-ps");
  worse.plan.messages = other.plan.messages;
  worse.plan.credit = other.plan.credit;
  worse.prediction = other.prediction;
  ASSERT_NE(digest(worse.plan), digest(entry_of(before, "ipart").plan));
  const auto kept = [&](double times_longer, double untried) {
    const Answer after = answer_after({{run_of(worse, times_longer)}, {}, untried});
    return digest(entry_of(after, "ipart").plan) == digest(worse.plan);
  };
  const double as_fast = entry_of(before, "ipart").prediction.iteration / worse.prediction.iteration;
  EXPECT_FALSE(kept(1.05 * as_fast, 0));
  EXPECT_TRUE(kept(1.05 * as_fast, 0.06));
  EXPECT_TRUE(kept(0.95 * as_fast, 0));
}

TEST(Trials, RefusesTimesThatMakeNoSense) {
  const PlanTime run = run_of(entry_of(answer_after({}), "ddp-25mib"), 1);
  PlanTime wrong = run;
  wrong.late = Seconds{-1};
  EXPECT_THROW(answer_after({{wrong}}), Error);
  EXPECT_THROW(answer_after({{run}, {}, -0.1}), Error);
}

}  // namespace
}  // namespace commtune::tuner
