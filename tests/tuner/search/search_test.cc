// The joint search and what it is made of, against brute force and its own promises.

#include "tuner/search/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "perfmodel/base/error.h"
#include "perfmodel/shipped_profiles.h"
#include "tests/tuner/testbed.h"
#include "tuner/messages.h"
#include "tuner/methods/mg_wfbp.h"
#include "tuner/methods/wfbp.h"
#include "tuner/search/local_search.h"
#include "tuner/search/merge_messages.h"
#include "tuner/search/nested_intervals.h"
#include "tuner/search/stream_plan.h"
#include "tuner/search/units.h"

namespace commtune::tuner {
namespace {

Planning random_planning(std::mt19937_64& random, std::size_t layers) {
  const double alpha = std::pow(10, -5 + 2 * (static_cast<double>(random() % 100) / 100));
  Profile profile = made_profile(random, layers);
  profile.layers.front().tensors = {{"first", 400'000_B}};
  return Planning(profile, made_cluster(8, alpha, 1e-9 * static_cast<double>(1 + random() % 8)), 4,
                  {AllReduce{}, ParameterServer{4}, ParameterServer{4, Placement::kDedicated}});
}

TEST(Units, HoldEveryByteOnceInOrderOfAppearance) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 50; ++round) {
    const Planning job = random_planning(random, 60);
    std::uint64_t bytes = 0;
    double ready = 0;
    for (const SearchUnit& unit : units_of(job)) {
      EXPECT_GE(unit.ready, ready);
      ready = unit.ready;
      std::uint64_t own = 0;
      for (const Piece& piece : unit.pieces) own += piece.length.count;
      EXPECT_EQ(own, unit.bytes);
      bytes += own;
    }
    EXPECT_EQ(bytes, job.work.total_bytes);
  }
}

/// Every way to divide units into neighbouring blocks and to give each block a side, simulated.
double best_by_nested_intervals(const std::vector<SearchUnit>& units, const GradientStream& stream,
                                const RoadCost& cost, Simulator& simulator, bool parted) {
  double best = std::numeric_limits<double>::infinity();
  const std::size_t n = units.size(), sides = parted ? 3 : 2;
  FlatPlan flat;
  for (unsigned cuts = 0; cuts < (1U << (n - 1)); ++cuts) {
    std::vector<Block> blocks{{0, 1, Side::kLeft}};
    for (std::size_t i = 1; i < n; ++i) {
      if ((cuts >> (i - 1) & 1U) != 0) blocks.push_back({i, 0, Side::kLeft});
      ++blocks.back().count;
    }
    std::size_t ways = 1;
    for (std::size_t b = 0; b < blocks.size(); ++b) ways *= sides;
    for (std::size_t way = 0; way < ways; ++way) {
      std::size_t rest = way;
      for (Block& block : blocks) {
        block.side = static_cast<Side>(rest % sides);
        rest /= sides;
      }
      flatten(stream_plan_of(units, blocks, stream, parted), stream, flat);
      best = std::min(best, simulator.run(flat, cost).iteration.count());
    }
  }
  return best;
}

TEST(NestedIntervals, FindsTheBestPlacementOfNeighbouringBlocks) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 60; ++round) {
    const Planning job = random_planning(random, 6);
    const GradientStream stream(job);
    const std::vector<SearchUnit> units = units_of(job, {0, 0, 1, 1});  // one per tensor
    if (units.size() > 7) continue;
    Simulator simulator(job.work);
    FlatPlan flat;
    for (const bool parted : {false, true}) {
      const RoadCost& cost = job.roads[0].cost;
      const double best = best_by_nested_intervals(units, stream, cost, simulator, parted);
      const auto blocks = nested_interval_blocks(units, cost, job.work.total_backward, 1.2 * best,
                                                 {.parted = parted, .steps = 400});
      ASSERT_FALSE(blocks.empty());
      flatten(stream_plan_of(units, blocks, stream, parted), stream, flat);
      // Steps of 1/400 of 1.2 T; states are compared by when their channel is free, while messages end by a
      // lag later that grows or shrinks with their size; and a stream of parted stages can hide that lag.
      EXPECT_LE(simulator.run(flat, cost).iteration.count(), best * (parted ? 1.03 : 1.015))
          << "round " << round;
    }
  }
}

TEST(NestedIntervals, SaysWhenNothingIsFasterThanTheLimit) {
  std::mt19937_64 random(3);
  const Planning job = random_planning(random, 20);
  EXPECT_TRUE(nested_interval_blocks(units_of(job), job.roads[0].cost, job.work.total_backward,
                                     job.work.compute() * 0.5)
                  .empty());
  EXPECT_TRUE(nested_interval_blocks({}, job.roads[0].cost, 1, 1).empty());
}

TEST(StreamPlan, BecomesTheSamePlanThatItWasJudgedAs) {
  std::mt19937_64 random(4);
  for (int round = 0; round < 100; ++round) {
    const Planning job = random_planning(random, 30);
    const GradientStream stream(job);
    const std::vector<SearchUnit> units = units_of(job);
    Simulator simulator(job.work);
    for (const bool parted : {false, true}) {
      const RoadOption& ring = job.roads[0];
      const auto blocks =
          nested_interval_blocks(units, ring.cost, job.work.total_backward, 10, {.parted = parted});
      const StreamPlan stream_plan = stream_plan_of(units, blocks, stream, parted);
      const Plan plan = plan_of(stream_plan, stream, job, ring.road);
      ASSERT_NO_THROW(check(plan, job.profile));
      FlatPlan flat;
      flatten(stream_plan, stream, flat);
      ASSERT_DOUBLE_EQ(simulator.run(flat, ring.cost).iteration.count(),
                       simulator.run(plan, ring.cost).iteration.count());
    }
  }
}

TEST(StreamPlan, ByLayerBecomesTheSamePlanToo) {
  std::mt19937_64 random(41);
  for (int round = 0; round < 100; ++round) {
    const Planning job = random_planning(random, 30);
    const GradientStream stream(job);
    const RoadOption& servers = job.roads[1];
    auto stream_plan = stream_plan_from(wfbp(job, servers), stream);
    ASSERT_TRUE(stream_plan);
    for (std::size_t left = random() % 20; left > 0 && stream_plan->ends.size() > 1; --left)
      merge(*stream_plan, random() % (stream_plan->ends.size() - 1), Place::kOfFirst);
    stream_plan->credit = kUnlimited;
    order_by_layer(*stream_plan);
    const Plan plan = plan_of(*stream_plan, stream, job, servers.road);
    ASSERT_NO_THROW(check(plan, job.profile));
    EXPECT_EQ(plan.order, Order::kPriority);
    Simulator simulator(job.work);
    FlatPlan flat;
    flatten(*stream_plan, stream, flat);
    ASSERT_DOUBLE_EQ(simulator.run(flat, servers.cost).iteration.count(),
                     simulator.run(plan, servers.cost).iteration.count());
  }
}

TEST(LocalSearch, CutsAndMergesWhatGoesByLayer) {
  std::mt19937_64 random(42);
  int faster = 0;
  for (int round = 0; round < 60; ++round) {
    const Planning job = random_planning(random, 30);
    const GradientStream stream(job);
    const RoadOption& servers = job.roads[1];
    Simulator simulator(job.work);
    auto stream_plan = stream_plan_from(wfbp(job, servers), stream);
    ASSERT_TRUE(stream_plan);
    stream_plan->credit = kUnlimited;
    order_by_layer(*stream_plan);
    FlatPlan flat;
    flatten(*stream_plan, stream, flat);
    const double before = simulator.run(flat, servers.cost).iteration.count();
    const double after =
        local_search(*stream_plan, stream, servers.cost, simulator, {0, simulator.events() + 20'000});
    const Plan plan = plan_of(*stream_plan, stream, job, servers.road);
    ASSERT_NO_THROW(check(plan, job.profile));
    EXPECT_EQ(plan.order, Order::kPriority);
    EXPECT_DOUBLE_EQ(simulator.run(plan, servers.cost).iteration.count(), after);
    EXPECT_GE(after, servers.bound.count() * (1 - 1e-12));
    EXPECT_LE(after, before);
    faster += after < 0.99 * before ? 1 : 0;
  }
  EXPECT_GT(faster, 10);
}

TEST(LocalSearch, NeverMakesAStreamPlanSlowerAndKeepsItValid) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 60; ++round) {
    const Planning job = random_planning(random, 30);
    const GradientStream stream(job);
    const std::vector<SearchUnit> units = units_of(job);
    Simulator simulator(job.work);
    for (const RoadOption& option : job.roads) {
      const bool parted = option.cost.may_part && round % 2 == 0;
      const auto blocks =
          nested_interval_blocks(units, option.cost, job.work.total_backward, 10, {.parted = parted});
      StreamPlan stream_plan = stream_plan_of(units, blocks, stream, parted);
      FlatPlan flat;
      flatten(stream_plan, stream, flat);
      const double before = simulator.run(flat, option.cost).iteration.count();
      const double after =
          local_search(stream_plan, stream, option.cost, simulator, {0, simulator.events() + 20'000});
      EXPECT_LE(after, before);
      const Plan plan = plan_of(stream_plan, stream, job, option.road);
      ASSERT_NO_THROW(check(plan, job.profile));
      EXPECT_DOUBLE_EQ(simulator.run(plan, option.cost).iteration.count(), after);
      EXPECT_GE(after, option.bound.count() * (1 - 1e-12));
    }
  }
}

TEST(StreamPlan, IsFoundAgainInItsPlan) {
  std::mt19937_64 random(14);
  for (int round = 0; round < 100; ++round) {
    const Planning job = random_planning(random, 30);
    const GradientStream stream(job);
    const std::vector<SearchUnit> units = units_of(job);
    for (const bool parted : {false, true}) {
      const auto blocks =
          nested_interval_blocks(units, job.roads[0].cost, job.work.total_backward, 10, {.parted = parted});
      const Plan plan =
          plan_of(stream_plan_of(units, blocks, stream, parted), stream, job, job.roads[0].road);
      const auto stream_plan = stream_plan_from(plan, stream);
      ASSERT_TRUE(stream_plan);
      Plan again = plan_of(*stream_plan, stream, job, job.roads[0].road);
      Simulator simulator(job.work);
      EXPECT_EQ(again.messages.size(), plan.messages.size());
      EXPECT_DOUBLE_EQ(simulator.run(again, job.roads[0].cost).iteration.count(),
                       simulator.run(plan, job.roads[0].cost).iteration.count());
    }
  }
}

TEST(StreamPlan, IsNotEveryPlan) {
  std::mt19937_64 random(15);
  const Planning job = random_planning(random, 10);
  const GradientStream stream(job);
  Plan plan = wfbp(job, job.roads[0]);
  ASSERT_TRUE(stream_plan_from(plan, stream));
  Plan apart = plan;  // its first and its third message in one
  ASSERT_GE(apart.messages.size(), 3U);
  const std::vector<Piece> third = apart.messages[2].pieces;
  apart.messages[0].pieces.insert(apart.messages[0].pieces.end(), third.begin(), third.end());
  apart.messages.erase(apart.messages.begin() + 2);
  EXPECT_FALSE(stream_plan_from(apart, stream));
  plan.order = Order::kPriority;
  EXPECT_FALSE(stream_plan_from(plan, stream));
}

TEST(MergeMessages, MergesWhatCostsNothing) {
  std::mt19937_64 random(16);
  std::size_t before = 0, after = 0;
  for (int round = 0; round < 60; ++round) {
    const Planning job = random_planning(random, 30);
    const GradientStream stream(job);
    const RoadCost& cost = job.roads[0].cost;
    auto stream_plan = stream_plan_from(wfbp(job, job.roads[0]), stream);
    ASSERT_TRUE(stream_plan);
    Simulator simulator(job.work);
    FlatPlan flat;
    flatten(*stream_plan, stream, flat);
    const double time = simulator.run(flat, cost).iteration.count();
    before += stream_plan->ends.size();
    const std::vector<Allowed> allowed{{cost, Seconds{1.05 * time}}};
    EXPECT_TRUE(merge_messages(*stream_plan, stream, simulator, allowed, simulator.events() + 100'000));
    after += stream_plan->ends.size();
    flatten(*stream_plan, stream, flat);
    EXPECT_LE(simulator.run(flat, cost).iteration.count(), 1.05 * time);
    EXPECT_NO_THROW(check(plan_of(*stream_plan, stream, job, job.roads[0].road), job.profile));
  }
  EXPECT_LT(after, before / 2);
}

TEST(MergeMessages, LeavesAStreamPlanThatIsTooSlowAlready) {
  std::mt19937_64 random(17);
  const Planning job = random_planning(random, 30);
  const GradientStream stream(job);
  auto stream_plan = stream_plan_from(wfbp(job, job.roads[0]), stream);
  ASSERT_TRUE(stream_plan);
  const std::size_t before = stream_plan->ends.size();
  Simulator simulator(job.work);
  const std::vector<Allowed> allowed{{job.roads[0].cost, Seconds{job.work.compute() / 2}}};
  EXPECT_FALSE(merge_messages(*stream_plan, stream, simulator, allowed, 1'000'000));
  EXPECT_EQ(stream_plan->ends.size(), before);
}

TEST(JointSearch, SaysTheSameInFewerMessagesWhereAStartIsGoodEnough) {
  // A slow model on a fast network: every method hides nearly everything, and one message per tensor is work
  // for nothing.
  const Cluster cluster = made_cluster(4, 20e-6, 1e-9);
  Profile profile = *shipped_profile("resnet50");
  for (Layer& layer : profile.layers) layer.backward = 20 * layer.backward;
  const Planning job(profile, cluster, 4, {AllReduce{Collective::kRing}});
  Plan plan = wfbp(job, job.roads[0]);
  plan.barrier = Barrier::kPerLayer;
  const Prediction prediction = simulate(job.work, plan, job.roads[0].cost);
  const SearchReport report = joint_search(job, {{plan, prediction}});
  EXPECT_EQ(report.stop, StopReason::kBound);
  EXPECT_LE(report.prediction.iteration.count(), prediction.iteration.count() * (1 + 1e-9));
  EXPECT_LT(report.best.messages.size(), plan.messages.size() / 4);
}

TEST(JointSearch, IsNeverSlowerThanItsStartsNorBelowTheBound) {
  std::mt19937_64 random(6);
  for (int round = 0; round < 60; ++round) {
    const Planning job = random_planning(random, 40);
    std::vector<PredictedPlan> starts;
    for (Plan plan : {wfbp(job, job.roads[0]), mg_wfbp(job, job.roads[0]), wfbp(job, job.roads[1])}) {
      const RoadCost& cost = plan.road == job.roads[0].road ? job.roads[0].cost : job.roads[1].cost;
      const Prediction prediction = simulate(job.work, plan, cost);
      starts.push_back({std::move(plan), prediction});
    }
    const SearchReport report = joint_search(job, starts);
    for (const PredictedPlan& start : starts)
      EXPECT_LE(report.prediction.iteration, start.prediction.iteration * (1 + 1e-9));
    double bound = std::numeric_limits<double>::infinity();
    for (const RoadOption& option : job.roads) bound = std::min(bound, option.bound.count());
    EXPECT_GE(report.prediction.iteration.count(), bound * (1 - 1e-12));
    EXPECT_NO_THROW(check(report.best, job.profile));
    EXPECT_EQ(report.best, joint_search(job, starts).best) << "not deterministic";
  }
}

TEST(JointSearch, LeavesLittleToMovesOfWhatGoesByLayer) {
  std::mt19937_64 random(43);
  int by_layer = 0;
  for (int round = 0; round < 60; ++round) {
    const double alpha = std::pow(10, -5 + 2 * (static_cast<double>(random() % 100) / 100));
    const Planning job(made_profile(random, 40),
                       made_cluster(4, alpha, 1e-9 * static_cast<double>(1 + random() % 8)), 4,
                       {ParameterServer{4}});
    const RoadOption& servers = job.roads[0];
    const Plan start = wfbp(job, servers);
    const SearchReport report =
        joint_search(job, {{start, simulate(job.work, start, servers.cost)}}, {.gap_limit = 0});
    if (report.best.order != Order::kPriority || report.stop != StopReason::kNoBetter) continue;
    Plan listed = report.best;
    listed.order = Order::kList;
    const GradientStream stream(job);
    auto stream_plan = stream_plan_from(listed, stream);
    if (!stream_plan) continue;
    order_by_layer(*stream_plan);
    Simulator simulator(job.work);
    const double after =
        local_search(*stream_plan, stream, servers.cost, simulator, {0, simulator.events() + 100'000});
    EXPECT_GE(after, report.prediction.iteration.count() * (1 - 1e-4)) << "round " << round;
    ++by_layer;
  }
  EXPECT_GT(by_layer, 10);
}

TEST(JointSearch, LetsNothingOvertakeWhereAllRanksNeedOneOrder) {
  std::mt19937_64 random(8);
  for (int round = 0; round < 40; ++round) {
    const double beta = 1e-9 * static_cast<double>(1 + random() % 8);
    const Planning job(made_profile(random, 40), made_cluster_of_hosts(2, 2, 1e-4, beta), 4,
                       {ParameterServer{.servers = 1, .local_sum = LocalSum::kFirst}});
    const Plan start = wfbp(job, job.roads[0]);
    const SearchReport report = joint_search(job, {{start, simulate(job.work, start, job.roads[0].cost)}});
    EXPECT_NO_THROW(check(report.best, job.profile));
  }
}

TEST(JointSearch, RefusesNonsense) {
  std::mt19937_64 random(7);
  const Planning job = random_planning(random, 5);
  EXPECT_THROW(joint_search(job, {}), Error);
  EXPECT_THROW(joint_search(job, {}, {.gap_limit = -1}), Error);
}

}  // namespace
}  // namespace commtune::tuner
