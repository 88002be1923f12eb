#include "perfmodel/cost/plan_cost.h"

#include <gmock/gmock.h>

#include "perfmodel/base/error.h"
#include "perfmodel/cost/stage_cost.h"
#include "perfmodel/simulate/simulate.h"
#include "perfmodel/simulate/workload.h"
#include "tests/perfmodel/throws.h"

namespace commtune {
namespace {

using ::testing::HasSubstr;

constexpr double kBeta = 1e-9, kGamma = 0.1e-9, kCast = 0.4e-9, kSlowGamma = 0.3e-9;

/// One rank a host, links of 1 ns/B without start-up; bf16 is slower to add, fp16 quicker.
Cluster made_up(int ranks) {
  Cluster cluster;
  cluster.name = "made-up";
  for (int i = 0; i < ranks; ++i) cluster.hosts.push_back({"h" + std::to_string(i), 1});
  cluster.links[LinkClass::kInterHost].alone.curve = Curve{Seconds{0}, SecondsPerByte{kBeta}};
  cluster.reduce_seconds_per_byte.value = kGamma;
  cluster.copy_seconds_per_byte.value = 5e-9;
  cluster.casts[WireFormat::kBfloat16] = {{kCast, 0}, {kSlowGamma, 0}};
  cluster.casts[WireFormat::kFloat16] = {{kCast, 0}, {kGamma / 2, 0}};
  return cluster;
}

double alone(const StageCost& cost) { return cost.alone(Bytes{4'000'000}).count(); }
double occupied(const StageCost& cost) { return cost.occupancy(Bytes{4'000'000}).count(); }

/// A ring of 4 adds 3/4 of each byte: 0.2 ns/B more for bf16. Casting is 0.4 ns/B, half of it in each stage.
TEST(PlanCost, AddsWhatCastsAndSlowerSumsTake) {
  const Cluster cluster = made_up(4);
  const RoadCost plain = road_cost(AllReduce{}, cluster, 4);
  const RoadCost cast = road_cost(AllReduce{}, cast_to(cluster, WireFormat::kBfloat16), 4);
  const double adding = 0.75 * (kSlowGamma - kGamma) * 4e6, casting = kCast * 4e6;
  EXPECT_NEAR(alone(cast.both), alone(plain.both) + adding + casting, 1e-9);
  EXPECT_NEAR(occupied(cast.both), occupied(plain.both) + adding + casting, 1e-9);
  EXPECT_NEAR(alone(cast.reduce), alone(plain.reduce) + adding + casting / 2, 1e-9);
  EXPECT_NEAR(alone(cast.distribute), alone(plain.distribute) + casting / 2, 1e-9);
  EXPECT_EQ(cast.copy.value, 0) << "the cast is the copy";
  EXPECT_THAT(cast.explanation, HasSubstr("cast to bf16"));
}

/// Recursive doubling over 8 adds each byte 3 times, in one stage; quicker sums save nothing.
TEST(PlanCost, ChargesEachSumOfARoad) {
  const Road doubling = AllReduce{Collective::kRecursiveDoubling};
  const Cluster cluster = made_up(8);
  const RoadCost plain = road_cost(doubling, cluster, 8);
  const RoadCost slower = road_cost(doubling, cast_to(cluster, WireFormat::kBfloat16), 8);
  EXPECT_NEAR(alone(slower.reduce), alone(plain.reduce) + (3 * 0.2e-9 + kCast) * 4e6, 1e-9);
  EXPECT_TRUE(slower.distribute.alone.empty());
  const RoadCost quicker = road_cost(doubling, cast_to(cluster, WireFormat::kFloat16), 8);
  EXPECT_NEAR(alone(quicker.reduce), alone(plain.reduce) + kCast * 4e6, 1e-9);
}

/// 4 workers on 2 servers: each adds 4 times half of a message.
TEST(PlanCost, ChargesServersForWhatTheyAdd) {
  const Road servers = ParameterServer{2, Placement::kDedicated};
  const Cluster cluster = made_up(6);
  const RoadCost plain = road_cost(servers, cluster, 4);
  const RoadCost cast = road_cost(servers, cast_to(cluster, WireFormat::kBfloat16), 4);
  EXPECT_NEAR(alone(cast.both), alone(plain.both) + (2 * 0.2e-9 + kCast) * 4e6, 1e-9);
}

TEST(PlanCost, IsUnknownWhereItWasNotProbed) {
  Cluster cluster = made_up(4);
  cluster.casts.erase(WireFormat::kFloat16);
  Plan plan;
  plan.workers = 4;
  plan.wire = WireFormat::kBfloat16;
  EXPECT_NO_THROW(plan_cost(plan, cluster));
  plan.wire = WireFormat::kFloat16;
  EXPECT_THAT(error_text(ErrorCode::kNotFound, [&] { plan_cost(plan, cluster); }),
              HasSubstr("unknown for fp16"));
}

Profile one_tensor(Bytes bytes) {
  Profile profile;
  profile.model = "one";
  profile.layers = {{"layer", Seconds{1e-3}, Seconds{1e-3}, Seconds{0}, {{"weight", bytes}}}};
  return profile;
}

TEST(CastTo, HalvesAProfilesBytes) {
  const Profile cast = cast_to(one_tensor(Bytes{4000}), WireFormat::kFloat16);
  EXPECT_EQ(cast.type, DataType::kFloat16);
  EXPECT_EQ(cast.gradient_bytes().count, 2000U);
  Profile halves = one_tensor(Bytes{4000});
  halves.type = DataType::kFloat16;
  EXPECT_THAT(bad_input([&] { cast_to(halves, WireFormat::kBfloat16); }),
              HasSubstr("only those of float32 are cast"));
}

/// Half the bytes on links of 1 ns/B: 2 * 3/4 * 2 MB instead of 4 MB, and what casting and adding take.
TEST(PlanCost, APlanThatCastsIsSimulatedByItsBytesOnTheWire) {
  const Cluster cluster = made_up(4);
  const Profile profile = one_tensor(Bytes{4'000'000});
  Plan plan;
  plan.workers = 4;
  plan.messages = {{{{0, Bytes{0}, Bytes{4'000'000}}}}};
  plan.priority = {0};
  const Workload work(profile);
  const double plain = simulate(work, plan, plan_cost(plan, cluster)).iteration.count();
  EXPECT_NEAR(plain, 2e-3 + 1.5 * 4e-3 + 0.75 * kGamma * 4e6, 1e-8);
  plan.wire = WireFormat::kBfloat16;
  const double cast = simulate(work, plan, plan_cost(plan, cluster)).iteration.count();
  EXPECT_NEAR(cast, 2e-3 + 1.5 * 2e-3 + (0.75 * kSlowGamma + kCast) * 2e6, 1e-8);
}

}  // namespace
}  // namespace commtune
