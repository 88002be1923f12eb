// All methods of the registry: what they build, and laws that every one of them keeps.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "perfmodel/shipped_profiles.h"
#include "tests/tuner/testbed.h"
#include "tuner/messages.h"
#include "tuner/methods/asc_wfbp.h"
#include "tuner/methods/bsp.h"
#include "tuner/methods/buckets.h"
#include "tuner/methods/byte_scheduler.h"
#include "tuner/methods/byteps.h"
#include "tuner/methods/ipart.h"
#include "tuner/methods/method.h"
#include "tuner/methods/mg_wfbp.h"
#include "tuner/methods/p3.h"
#include "tuner/methods/us_byte.h"
#include "tuner/methods/wfbp.h"
#include "tuner/server_keys.h"

namespace commtune::tuner {
namespace {

/// Three layers in forward order: 4 MB, 1 MB and 12 MB + 40 B.
Profile three_layers() {
  Profile profile;
  profile.model = "three";
  const Seconds f{1e-3}, b{2e-3};
  profile.layers = {{"a", f, b, Seconds{0}, {{"a.w", 4'000'000_B}}, 0},
                    {"b", f, b, Seconds{0}, {{"b.w", 1'000'000_B}}, 0},
                    {"c", f, b, Seconds{0}, {{"c.w", 12'000'000_B}, {"c.b", 40_B}}, 0}};
  return profile;
}

Planning planning(const Profile& profile, int workers = 4) {
  return Planning(profile, made_cluster(8, 50e-6, 8e-9), workers,
                  {AllReduce{}, ParameterServer{workers}, ParameterServer{2, Placement::kDedicated}});
}

const RoadOption& ring(const Planning& job) { return job.roads[0]; }
const RoadOption& servers(const Planning& job) { return job.roads[1]; }

std::vector<std::uint64_t> sizes(const Plan& plan) {
  std::vector<std::uint64_t> list;
  for (const Message& message : plan.messages) list.push_back(message_bytes(message).count);
  return list;
}

TEST(Bsp, SendsOneMessageAfterTheBackwardPass) {
  const Planning job = planning(three_layers());
  const Plan plan = bsp(job, ring(job));
  EXPECT_THAT(sizes(plan), testing::ElementsAre(17'000'040));
  EXPECT_EQ(plan.release, Release::kBackward);
  EXPECT_EQ(plan.barrier, Barrier::kFull);
}

TEST(Bsp, IsCutForServersAsBytePsDoes) {
  const Planning job = planning(three_layers());
  EXPECT_THAT(sizes(bsp(job, servers(job))),
              testing::ElementsAre(4'096'000, 4'096'000, 4'096'000, 4'096'000, 616'040));
}

TEST(Wfbp, SendsTensorsInBackwardOrder) {
  const Planning job = planning(three_layers());
  const Plan plan = wfbp(job, ring(job));
  EXPECT_THAT(sizes(plan), testing::ElementsAre(40, 12'000'000, 1'000'000, 4'000'000));
  EXPECT_EQ(plan.messages[0].pieces[0].tensor, 3U);
  EXPECT_THAT(sizes(wfbp(job, servers(job))),
              testing::ElementsAre(40, 4'096'000, 4'096'000, 3'808'000, 1'000'000, 4'000'000));
}

TEST(Buckets, CloseWhenTheyHoldTheirCap) {
  // First bucket closes at >= 1 MiB (40 B + 12 MB), then 1 MB + 4 MB stay below 25 MiB.
  const Planning job = planning(three_layers());
  EXPECT_THAT(sizes(ddp_buckets(job, ring(job))), testing::ElementsAre(12'000'040, 5'000'000));
  EXPECT_THAT(sizes(buckets(job, ring(job), 40_B, 1_MiB)), testing::ElementsAre(40, 12'000'000, 5'000'000));
}

TEST(ByteScheduler, CutsAndOrdersByLayer) {
  const Planning job = planning(three_layers());
  const Plan plan = byte_scheduler(job, servers(job), {4'000'000_B, 8'000'000_B});
  EXPECT_THAT(sizes(plan), testing::ElementsAre(40, 4'000'000, 4'000'000, 4'000'000, 1'000'000, 4'000'000));
  EXPECT_THAT(plan.priority, testing::ElementsAre(2, 3, 4, 5, 1, 0));
  EXPECT_EQ(plan.order, Order::kPriority);
  EXPECT_EQ(plan.barrier, Barrier::kPerLayer);
}

TEST(ByteScheduler, FreezesItsOrderForAllReduce) {
  // At 8 ns a byte a piece takes far longer than the backward pass: when the second one could go, everything
  // has appeared and layer a goes first, then b, then the rest of c.
  const Planning job = planning(three_layers());
  const Plan plan = byte_scheduler(job, ring(job), {4'000'000_B, 0_B});
  EXPECT_EQ(plan.order, Order::kList);
  std::vector<TensorId> order;
  for (const Message& message : plan.messages) order.push_back(message.pieces[0].tensor);
  EXPECT_THAT(order, testing::ElementsAre(3, 2, 0, 1, 2, 2));
}

/// Four servers that take messages whole.
Planning whole_planning(const Profile& profile) {
  return Planning(profile, made_cluster(8, 50e-6, 8e-9), 4,
                  {ParameterServer{4, Placement::kColocated, Assignment::kHashed}});
}

TEST(BytePs, HandsOutPiecesByItsHash) {
  // Tensors by name: a.w, b.w, c.b, c.w.
  const Planning job = whole_planning(three_layers());
  const Plan plan = byteps(job, job.roads[0]);
  EXPECT_THAT(sizes(plan), testing::ElementsAre(40, 4'096'000, 4'096'000, 3'808'000, 1'000'000, 4'000'000));
  const auto of = [](std::uint64_t declared, std::uint64_t piece) {
    return static_cast<std::uint32_t>(byteps_hash((declared << 16) + piece) % 4);
  };
  EXPECT_THAT(plan.server, testing::ElementsAre(of(2, 0), of(3, 0), of(3, 1), of(3, 2), of(1, 0), of(0, 0)));
  EXPECT_EQ(plan.barrier, Barrier::kFull);
  EXPECT_EQ(wfbp(job, job.roads[0]).server, plan.server);
}

TEST(P3, DealsSlicesOutInTurn) {
  const Planning job = whole_planning(three_layers());
  EXPECT_TRUE(p3(job, job.roads[0]).server.empty());
}

TEST(ByteScheduler, KeepsServersWithTheirPiecesWhenItFreezesTheOrder) {
  const Planning job(three_layers(), made_cluster_of_hosts(2, 4, 1e-4, 8e-9), 8,
                     {ParameterServer{2, Placement::kDedicated, Assignment::kHashed, LocalSum::kFirst}});
  const Plan plan = byte_scheduler(job, job.roads[0], {1'000'000_B, 0_B});
  Plan listed = byte_scheduler(whole_planning(three_layers()), whole_planning(three_layers()).roads[0],
                               {1'000'000_B, 0_B});
  listed.server = byteps_servers(job.keys, listed.messages, 2);
  for (std::size_t i = 0; i < plan.messages.size(); ++i) {
    const auto same = std::ranges::find(listed.messages, plan.messages[i]) - listed.messages.begin();
    EXPECT_EQ(plan.server[i], listed.server[static_cast<std::size_t>(same)]) << "message " << i;
  }
}

TEST(ByteScheduler, IsTunedByWhatItsPlansTake) {
  constexpr double kQuick = 0.01;
  for (const Profile& profile : {three_layers(), *shipped_profile("vgg16")}) {
    for (Planning job : {whole_planning(profile), planning(profile)}) {
      const RoadOption& option = job.roads[0];
      const auto time = [&](const Plan& plan) { return simulate(job.work, plan, option.cost).iteration; };
      Seconds by_hand = time(untuned_byte_scheduler(job, option));
      for (const Bytes partition : {256_KiB, 1_MiB, 4_MiB}) {
        for (const std::uint64_t behind : {0, 3}) {
          const Bytes credit{partition.count * behind};
          by_hand = std::min(by_hand, time(byte_scheduler(job, option, {partition, credit})));
        }
      }
      const Seconds quick = time(tuned_byte_scheduler(job, option));
      EXPECT_LE(quick, by_hand * (1 + kQuick));
      job.thorough = true;
      const Seconds thorough = time(tuned_byte_scheduler(job, option));
      // Of servers in turn each partition has luck of its own, and settings are compared among neighbours.
      const double close = takes_messages_whole(option.road) ? kQuick : kIndifferent;
      EXPECT_LE(thorough, by_hand * (1 + close));
      EXPECT_LE(thorough, quick * (1 + close));
    }
  }
}

TEST(ByteScheduler, IsNoSlowerThanWithoutALimitWhereAllRanksNeedEachOther) {
  // Far longer alone than in a stream: of few messages under way each waits for the others.
  Cluster cluster = made_cluster(8, 50e-6, 8e-9);
  OperationFit fit{kRing, Operation::kAllReduce, 4, {}, {}};
  fit.alone.curve = Curve{Seconds{1.2e-3}, SecondsPerByte{3e-8}};
  fit.streamed.curve = Curve{Seconds{0.12e-3}, SecondsPerByte{2e-8}};
  fit.alone.largest = fit.streamed.largest = 1024_MiB;
  cluster.operations.push_back(fit);
  for (const double bytes : {0.005, 0.02, 0.05, 0.2}) {
    const Planning job(scaled(*shipped_profile("resnet50"), bytes, 0.1), cluster, 4, {AllReduce{}});
    const RoadOption& option = ring(job);
    const auto time = [&](const Plan& plan) { return simulate(job.work, plan, option.cost).iteration; };
    const Plan free = byte_scheduler(job, option, {1024_MiB, kUnlimited});
    EXPECT_LE(time(tuned_byte_scheduler(job, option)), time(free) * (1 + kIndifferent)) << bytes;
  }
}

TEST(ByteScheduler, CreditIsNoMultipleOfThePartition) {
  // Whole tensors one after the other pay each start-up; a whole one beside another delays what is more
  // urgent. A few small ones under way do neither.
  Planning job = planning(*shipped_profile("resnet50"));
  job.thorough = true;
  const RoadOption& option = ring(job);
  const auto time = [&](const Plan& plan) { return simulate(job.work, plan, option.cost).iteration; };
  Seconds by_pieces = kNoLimit;
  for (Bytes partition = 256_KiB; partition <= 16_MiB; partition = Bytes{2 * partition.count}) {
    for (const std::uint64_t behind : {0, 1, 2, 3})
      by_pieces = std::min(by_pieces,
                           time(byte_scheduler(job, option, {partition, Bytes{partition.count * behind}})));
  }
  EXPECT_LT(time(tuned_byte_scheduler(job, option)), by_pieces);
}

TEST(UsByte, CutsWhatIsUnderWayWhenTheBackwardPassEnds) {
  // At 12 ns a byte nothing hides: what is sent under the backward pass ends with it, at 6 ms.
  const Planning job = planning(three_layers());
  const Plan plan = us_byte(job, ring(job));
  check(plan, job.profile);
  EXPECT_EQ(plan.barrier, Barrier::kPerLayer);
  const auto cut = [](const Message& message) { return message.pieces.back().offset > 0_B; };
  EXPECT_TRUE(std::ranges::any_of(plan.messages, cut));
  // After that in forward order.
  EXPECT_EQ(plan.messages[1].pieces.back().tensor, 0U);
}

TEST(ByteScheduler, LooksNoFurtherWhereAnotherRoadIsFaster) {
  const Planning job = planning(three_layers());
  RoadOption option = servers(job);
  const auto time = [&](const Plan& plan) { return simulate(job.work, plan, option.cost).iteration; };
  const Seconds best = time(tuned_byte_scheduler(job, option));
  option.to_beat = best * 1.01;
  EXPECT_EQ(time(tuned_byte_scheduler(job, option)), best);
  // What cannot be found is not the best, but a plan all the same.
  option.to_beat = best / 2;
  const Plan plan = tuned_byte_scheduler(job, option);
  EXPECT_NO_THROW(check(plan, job.profile));
  EXPECT_GE(time(plan), best);
}

TEST(IPart, AddsLayersAsLongAsTheirPushHides) {
  // Appear at 1, 2, 3 and 4 s; 1 s and 0.1 s a byte. The first two: 2 + 1 + 2 = 5 s, three would take until
  // 3 + 1 + 3 = 7. By 6 s: the two, and then nothing that starts at 5 with a start-up of 1 hides a byte.
  const FusionJob job{{1, 2, 3, 4}, {10, 10, 10, 10}};
  const Curve cost{Seconds{1}, SecondsPerByte{0.1}};
  EXPECT_THAT(hidden_parts(job, {cost, cost}, 6), testing::ElementsAre(2, 1, 1));
  EXPECT_THAT(hidden_parts(job, {cost, cost}, 100), testing::ElementsAre(4));
  EXPECT_THAT(hidden_parts(job, {cost, cost}, 1), testing::ElementsAre(1, 1, 1, 1));
}

TEST(IPart, CutsPullsOnTheirOwnAndAsksForThemInForwardOrder) {
  // Four layers whose pushes (8 ms) nearly hide under the backward pass (10 ms each), and answers that take
  // 20 ms whatever they carry, on a channel of their own: one pull for all is best.
  Profile profile;
  profile.model = "four";
  for (const char* name : {"a", "b", "c", "d"})
    profile.layers.push_back({name, Seconds{1e-3}, Seconds{10e-3}, {}, {{name, 8000_B}}, 0});
  RoadCost cost;
  cost.reduce.alone = cost.reduce.occupancy = Curve{Seconds{0}, SecondsPerByte{1e-6}};
  cost.distribute.alone = cost.distribute.occupancy = Curve{Seconds{20e-3}, SecondsPerByte{0}};
  cost.both.alone = cost.both.occupancy = Curve{Seconds{20e-3}, SecondsPerByte{1e-6}};
  cost.shared_channel = false;
  cost.through_servers = true;
  cost.measured_largest = 1_MiB;
  const Planning job(profile, 4, {{ParameterServer{4, Placement::kDedicated}, cost}});
  const RoadOption& option = job.roads.front();
  const Plan plan = ipart(job, option);
  check(plan, profile);
  EXPECT_GT(plan.messages.size(), 2U);
  ASSERT_EQ(plan.pulls.size(), 1U);
  EXPECT_EQ(plan.pulls[0].pieces.size(), 4U);
  // d and c at 20 .. 36 ms, what ends under the backward pass of b until 40, then a and the rest of b: 52;
  // back at 72.
  EXPECT_NEAR(simulate(job.work, plan, cost).iteration.count(), 76e-3, 1e-5);
  EXPECT_EQ(plan.sequence, pulls_behind_pushes(plan));
  // Where workers of a host sum first, what comes back is what went.
  const RoadOption sums{ParameterServer{4, Placement::kDedicated, Assignment::kEven, LocalSum::kFirst}, cost};
  EXPECT_TRUE(ipart(Planning(profile, 4, {sums}), sums).pulls.empty());
  // So it is where both ways share a channel.
  cost.shared_channel = true;
  const RoadOption beside{ParameterServer{4}, cost};
  EXPECT_TRUE(ipart(Planning(profile, 4, {beside}), beside).pulls.empty());
}

TEST(IPart, PutsAPullBehindTheLastPushThatItNeeds) {
  Plan plan;
  plan.messages = {{{{2, 0_B, 8_B}}}, {{{1, 0_B, 8_B}}}, {{{0, 0_B, 8_B}}}};
  plan.pulls = {{{{0, 0_B, 8_B}}}, {{{2, 0_B, 8_B}, {1, 0_B, 8_B}}}};
  EXPECT_EQ(pulls_behind_pushes(plan), (std::vector<Step>{{0, Stage::kReduce},
                                                          {1, Stage::kReduce},
                                                          {2, Stage::kReduce},
                                                          {0, Stage::kDistribute},
                                                          {1, Stage::kDistribute}}));
  std::swap(plan.pulls[0], plan.pulls[1]);
  EXPECT_EQ(pulls_behind_pushes(plan), (std::vector<Step>{{0, Stage::kReduce},
                                                          {1, Stage::kReduce},
                                                          {0, Stage::kDistribute},
                                                          {2, Stage::kReduce},
                                                          {1, Stage::kDistribute}}));
}

TEST(AscWfbp, LetsAsManyMessagesUnderWayAsPay) {
  const Planning job = planning(three_layers());
  const Plan plan = asc_wfbp(job, ring(job));
  const auto time = [&](const Plan& each) { return simulate(job.work, each, ring(job).cost).iteration; };
  EXPECT_LE(time(plan), time(exact_fusion_plan(job, ring(job))));
}

TEST(Methods, HaveNamesOfTheirOwnAndCanBeFound) {
  std::set<std::string_view> names;
  for (const Method& method : methods()) {
    EXPECT_TRUE(names.insert(method.name).second) << method.name;
    EXPECT_EQ(find_method(method.name), &method);
  }
  EXPECT_EQ(find_method("no-such-method"), nullptr);
  for (const char* name :
       {"bsp-ps", "bsp-a2a", "wfbp-ps", "wfbp-a2a", "mg-wfbp", "bytescheduler-ps", "bytescheduler-a2a"}) {
    EXPECT_NE(find_method(name), nullptr) << "the survey's Table 1 has " << name;
  }
}

void check_all(const Planning& job) {
  for (const Method& method : methods()) {
    for (const RoadOption& option : job.roads) {
      if (architecture_of(option.road) != method.architecture) continue;
      const Plan plan = method.build(job, option);
      ASSERT_NO_THROW(check(plan, job.profile)) << method.name;
      ASSERT_EQ(plan, method.build(job, option)) << method.name << " is not deterministic";
      const double time = simulate(job.work, plan, option.cost).iteration.count();
      ASSERT_GE(time, option.bound.count() * (1 - 1e-12)) << method.name << " on " << describe(option.road);
    }
  }
}

TEST(Methods, BuildValidPlansAboveTheBoundForRandomJobs) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 150; ++round) {
    const Profile profile = made_profile(random, 40);
    const double alpha = std::pow(10, -5 + 2 * (static_cast<double>(random() % 100) / 100));
    check_all(Planning(
        profile, made_cluster(8, alpha, 1e-9 * static_cast<double>(1 + random() % 8)), 4,
        {AllReduce{}, ParameterServer{4}, ParameterServer{2}, ParameterServer{4, Placement::kDedicated},
         ParameterServer{3, Placement::kColocated, Assignment::kHashed}}));
  }
}

TEST(Methods, BuildValidPlansBehindALocalSum) {
  std::mt19937_64 random(9);
  for (int round = 0; round < 40; ++round) {
    const Profile profile = made_profile(random, 40);
    check_all(Planning(profile,
                       made_cluster_of_hosts(6, 4, 1e-4, 1e-9 * static_cast<double>(1 + random() % 8)), 16,
                       {ParameterServer{16, Placement::kColocated, Assignment::kEven, LocalSum::kFirst},
                        ParameterServer{2, Placement::kDedicated, Assignment::kHashed, LocalSum::kFirst}}));
  }
}

TEST(Methods, BuildValidPlansForEveryShippedProfile) {
  for (const std::string& name : shipped_profile_names()) check_all(planning(*shipped_profile(name)));
}

TEST(Methods, CostNothingOnOneWorker) {
  const Planning job(three_layers(), Cluster{}, 1, {AllReduce{}, ParameterServer{1}});
  for (const Method& method : methods()) {
    const RoadOption& option = job.roads[method.architecture == Architecture::kAllReduce ? 0 : 1];
    EXPECT_DOUBLE_EQ(simulate(job.work, method.build(job, option), option.cost).iteration.count(),
                     job.work.compute());
  }
}

TEST(Methods, ExactFusionIsNeverWorseThanMgWfbpNorThatThanWfbp) {
  // The costs are lines, so MG-WFBP's line is the true one.
  std::mt19937_64 random(6);
  for (int round = 0; round < 300; ++round) {
    const Profile profile = made_profile(random, 60);
    const double alpha = std::pow(10, -5 + 2 * (static_cast<double>(random() % 100) / 100));
    const Planning job(profile, made_cluster(4, alpha, 1e-9 * static_cast<double>(1 + random() % 8)), 4,
                       {AllReduce{}});
    const auto time = [&](const Plan& plan) {
      return simulate(job.work, plan, ring(job).cost).iteration.count();
    };
    const double exact = time(exact_fusion_plan(job, ring(job)));
    const double greedy = time(mg_wfbp(job, ring(job)));
    ASSERT_LE(exact, greedy * (1 + 1e-12));
    ASSERT_LE(greedy, time(wfbp(job, ring(job))) * (1 + 1e-12));
  }
}

TEST(CutMessages, KeepsEveryByteAndWholeElements) {
  const Profile profile = three_layers();
  const auto cut = cut_messages(tensor_messages(profile), 999'999_B, 4_B);
  Bytes total;
  for (const Message& message : cut) {
    EXPECT_LE(message_bytes(message), 999'999_B);
    EXPECT_EQ(message_bytes(message).count % 4, 0U);
    total += message_bytes(message);
  }
  EXPECT_EQ(total, profile.gradient_bytes());
}

TEST(CutMessages, LeavesMessagesWholeThatFit) {
  const Message fits{{{2, 0_B, 60_B}, {1, 0_B, 40_B}}};
  const Message large{{{0, 0_B, 120_B}}};
  const auto cut = cut_messages({fits, large}, 100_B, 4_B);
  ASSERT_EQ(cut.size(), 3U);
  EXPECT_EQ(cut[0], fits);
  EXPECT_EQ(cut[1], (Message{{{0, 0_B, 100_B}}}));
  EXPECT_EQ(cut[2], (Message{{{0, 100_B, 20_B}}}));
}

TEST(CutMessages, LeavesOutPiecesWithoutBytes) {
  const auto cut = cut_messages({Message{{{1, 0_B, 0_B}, {0, 0_B, 40_B}}}, Message{}}, 100_B, 4_B);
  ASSERT_EQ(cut.size(), 1U);
  EXPECT_EQ(cut[0], (Message{{{0, 0_B, 40_B}}}));
}

}  // namespace
}  // namespace commtune::tuner
