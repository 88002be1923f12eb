#include "perfmodel/simulate/simulate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

namespace commtune {
namespace {

/// Two layers: forward 1 and 2 s, backward 3 and 4 s; tensor 0 (layer 0) of 10 B, tensor 1 (layer 1) of 20 B.
/// Gradient 1 exists at 4 s, gradient 0 at 7 s.
Profile two_layers() {
  Profile profile;
  profile.model = "two";
  profile.layers = {{"a", Seconds{1}, Seconds{3}, Seconds{0}, {{"a.w", 40_B}}, 0},
                    {"b", Seconds{2}, Seconds{4}, Seconds{0}, {{"b.w", 80_B}}, 0}};
  return profile;
}

RoadCost line_cost(double alpha, double beta) {
  RoadCost cost;
  cost.both.alone = cost.both.occupancy = Curve{Seconds{alpha}, SecondsPerByte{beta}};
  cost.reduce.alone = cost.reduce.occupancy = Curve{Seconds{alpha / 2}, SecondsPerByte{beta / 2}};
  cost.distribute = cost.reduce;
  cost.measured_largest = 1_MiB;
  return cost;
}

Message whole(TensorId tensor, std::uint64_t bytes) { return {{{tensor, Bytes{0}, Bytes{bytes}}}}; }

Plan tensor_by_tensor() {
  Plan plan;
  plan.workers = 2;
  plan.messages = {whole(1, 80), whole(0, 40)};
  plan.priority = {1, 0};
  return plan;
}

double time_of(const Profile& profile, const Plan& plan, const RoadCost& cost, Timeline* timeline = nullptr) {
  return simulate(Workload{profile}, plan, cost, timeline).iteration.count();
}

TEST(Simulate, NothingToSendTakesTheTimeOfCompute) {
  EXPECT_DOUBLE_EQ(time_of(two_layers(), tensor_by_tensor(), RoadCost{}), 10);
}

TEST(Simulate, FullBarrierWaitsForTheLastGradient) {
  // Message 1: 4 .. 4 + 1 + 80 * 0.05 = 9. Message 0: 9 .. 9 + 1 + 2 = 12. Forward 3 s: 15.
  Timeline timeline;
  EXPECT_DOUBLE_EQ(time_of(two_layers(), tensor_by_tensor(), line_cost(1, 0.05), &timeline), 15);
  EXPECT_DOUBLE_EQ(timeline.messages[0].released.count(), 4);
  EXPECT_DOUBLE_EQ(timeline.messages[0].reduce_start.count(), 4);
  EXPECT_DOUBLE_EQ(timeline.messages[0].distribute_end.count(), 9);
  EXPECT_DOUBLE_EQ(timeline.messages[1].reduce_start.count(), 9);
  EXPECT_DOUBLE_EQ(timeline.messages[1].distribute_end.count(), 12);
  EXPECT_DOUBLE_EQ(timeline.forward_start[0].count(), 12);
  EXPECT_DOUBLE_EQ(timeline.forward_end[1].count(), 15);
}

TEST(Simulate, ReleaseAfterTheBackwardPass) {
  // Message 1: 7 .. 12. Message 0: 12 .. 15. Forward: 18.
  Plan plan = tensor_by_tensor();
  plan.release = Release::kBackward;
  EXPECT_DOUBLE_EQ(time_of(two_layers(), plan, line_cost(1, 0.05)), 18);
}

TEST(Simulate, PerLayerBarrierLetsLateLayersArriveLater) {
  // In the order 0, 1: message 0 at 7 .. 10, message 1 at 10 .. 15. Layer 0 runs 10 .. 11, layer 1 at 15
  // .. 17.
  Plan plan = tensor_by_tensor();
  std::swap(plan.messages[0], plan.messages[1]);
  plan.barrier = Barrier::kPerLayer;
  Timeline timeline;
  EXPECT_DOUBLE_EQ(time_of(two_layers(), plan, line_cost(1, 0.05), &timeline), 17);
  EXPECT_DOUBLE_EQ(timeline.forward_start[0].count(), 10);
  EXPECT_DOUBLE_EQ(timeline.forward_start[1].count(), 15);
}

TEST(Simulate, FusionPaysOneStartUpAndWaitsForTheLastGradient) {
  // One message of 120 B at 7: 7 + 1 + 6 = 14, forward 3: 17.
  Plan plan = tensor_by_tensor();
  plan.messages = {{{{1, 0_B, 80_B}, {0, 0_B, 40_B}}}};
  plan.priority = {0};
  EXPECT_DOUBLE_EQ(time_of(two_layers(), plan, line_cost(1, 0.05)), 17);
}

TEST(Simulate, OnlyMessagesThatAreNoStretchAreCopied) {
  // As above; where the pieces do not lie in the message's order, copying 0.01 s a byte adds 1.2.
  Plan plan = tensor_by_tensor();
  plan.messages = {{{{1, 0_B, 80_B}, {0, 0_B, 40_B}}}};
  plan.priority = {0};
  RoadCost cost = line_cost(1, 0.05);
  cost.copy = SecondsPerByte{0.01};
  EXPECT_DOUBLE_EQ(time_of(two_layers(), plan, cost), 17);
  plan.messages = {{{{0, 0_B, 40_B}, {1, 0_B, 80_B}}}};
  EXPECT_DOUBLE_EQ(time_of(two_layers(), plan, cost), 18.2);
}

TEST(Simulate, CreditOverlapsLatencies) {
  // Alone 3 s + 0.05 s/B, of which the channel is kept 1 s + 0.05 s/B, all of it in two rounds. Message 1: 4
  // .. 6.5, there at 7.5, 7.5 .. 10, there at 11. Message 0 begins at 7, gives way at 7.5 and goes on at 10
  // .. 11, there at 12, and 12 .. 13.5, there at 14.5; forward 3: 17.5.
  RoadCost cost = line_cost(3, 0.05);
  cost.both.occupancy = Curve{Seconds{1}, SecondsPerByte{0.05}};
  Plan plan = tensor_by_tensor();
  plan.credit = 1_MiB;
  EXPECT_DOUBLE_EQ(time_of(two_layers(), plan, cost), 17.5);
  // Without credit it waits until message 1's last bytes have left at 10: 10 + 5 + 3. Half of them left in
  // the first round.
  plan.credit = 0_B;
  EXPECT_DOUBLE_EQ(time_of(two_layers(), plan, cost), 18);
  // Of the 40 bytes of the second round 16 take 1 s: message 0 starts at 9, 1 s later it has the channel. For
  // its latencies, 2 s, it takes twice that second longer.
  plan.credit = 16_B;
  EXPECT_DOUBLE_EQ(time_of(two_layers(), plan, cost), 20);
  // From 7 on it may start, when 2.5 s of message 1 are left: 2 s longer, since one other is there.
  plan.credit = 40_B;
  EXPECT_DOUBLE_EQ(time_of(two_layers(), plan, cost), 19.5);
  // But for 1.5 s of its latencies it is on its way, where nobody is in front of it.
  cost.on_the_way = Seconds{1.5};
  EXPECT_DOUBLE_EQ(time_of(two_layers(), plan, cost), 18);
}

TEST(Simulate, AnOpaqueRoadHasSentEverythingWhenAMessageHasEnded) {
  // As above; message 1 ends at 11: 11 + 5 + 3.
  RoadCost cost = line_cost(3, 0.05);
  cost.both.occupancy = Curve{Seconds{1}, SecondsPerByte{0.05}};
  cost.rounds = {1, 0};
  cost.opaque = true;
  Plan plan = tensor_by_tensor();
  for (const Bytes credit : {0_B, 79_B}) {
    plan.credit = credit;
    EXPECT_DOUBLE_EQ(time_of(two_layers(), plan, cost), 19) << credit.count;
  }
  // With credit for all one keeps the channel after the other, 4 .. 9 .. 12, and message 0 ends at 14.
  plan.credit = 120_B;
  EXPECT_DOUBLE_EQ(time_of(two_layers(), plan, cost), 17);
  // With less it starts at 7 as well, but what it takes besides the channel lasts 2 s longer.
  plan.credit = 80_B;
  EXPECT_DOUBLE_EQ(time_of(two_layers(), plan, cost), 19);
}

TEST(Simulate, WhatIsUnderWayTogetherTakesTurns) {
  // Rounds of 2 and 1 s, two each, from 7 on. Sockets take the first round of both, and message 0's second
  // one when the first has come.
  RoadCost cost = line_cost(0, 0.05);
  cost.rounds = {2, 0};
  cost.head_of_line = Seconds{10};
  Plan plan = tensor_by_tensor();
  plan.release = Release::kBackward;
  plan.credit = 1_MiB;
  Timeline timeline;
  EXPECT_DOUBLE_EQ(time_of(two_layers(), plan, cost, &timeline), 16);
  EXPECT_DOUBLE_EQ(timeline.messages[0].distribute_end.count(), 12);  // 7 .. 9, 10 .. 12
  EXPECT_DOUBLE_EQ(timeline.messages[1].reduce_start.count(), 9);
  EXPECT_DOUBLE_EQ(timeline.messages[1].distribute_end.count(), 13);  // 9 .. 10, 12 .. 13
  // As much as sockets hold, 0.5 s, is ahead of message 0's second round.
  cost.head_of_line = Seconds{0.5};
  time_of(two_layers(), plan, cost, &timeline);
  EXPECT_DOUBLE_EQ(timeline.messages[0].distribute_end.count(), 11.5);
  EXPECT_DOUBLE_EQ(timeline.messages[1].distribute_end.count(), 13);
  // Without credit they do not meet.
  cost.head_of_line = Seconds{10};
  plan.credit = 0_B;
  EXPECT_DOUBLE_EQ(time_of(two_layers(), plan, cost, &timeline), 16);
  EXPECT_DOUBLE_EQ(timeline.messages[0].distribute_end.count(), 11);
}

TEST(Simulate, ASmallMessageWaitsAtEachRound) {
  // Four rounds of 0.25 s and four of 2 s, each of which is there a second after it left. The small ones: 7
  // .. 7.25, 9.25 .. 9.5, 12.25 .. 12.5 and 15.25 .. 15.5, each behind one of the others.
  RoadCost cost;
  cost.both.alone = Curve{Seconds{4}, SecondsPerByte{0.025}};
  cost.both.occupancy = Curve{Seconds{0}, SecondsPerByte{0.025}};
  cost.rounds = {4, 0};
  cost.head_of_line = Seconds{10};
  cost.measured_largest = 1_MiB;
  Profile profile = two_layers();
  profile.layers[1].tensors[0].bytes = 320_B;
  Plan plan = tensor_by_tensor();
  plan.messages = {whole(0, 40), whole(1, 320)};
  plan.credit = 1_MiB;
  Timeline timeline;
  time_of(profile, plan, cost, &timeline);
  EXPECT_DOUBLE_EQ(timeline.messages[0].reduce_start.count(), 7);
  EXPECT_DOUBLE_EQ(timeline.messages[0].distribute_end.count(), 16.5);
}

TEST(Simulate, CreditOfParameterServersEndsWithThePush) {
  // Pieces of 40 B take 3 s, half of it the push. The first is pushed at 4 .. 5.5, when the second may start,
  // but its answer is more urgent: 5.5 .. 7. Tensor 0 exists at 7, when the second has started and waits for
  // its push to end: 7 .. 8.5. Then tensor 0's push and answer, 8.5 .. 11.5, and the second's answer, 11.5 ..
  // 13. Layer 0 at 11.5 .. 12.5, layer 1 at 13 .. 15.
  RoadCost cost = line_cost(1, 0.05);
  cost.reduce = cost.distribute = {Curve{Seconds{0.5}, SecondsPerByte{0.025}},
                                   Curve{Seconds{0.5}, SecondsPerByte{0.025}}};
  Plan plan = tensor_by_tensor();
  plan.messages = {{{{1, 0_B, 40_B}}}, {{{1, 40_B, 40_B}}}, whole(0, 40)};
  plan.priority = {1, 2, 0};
  plan.order = Order::kPriority;
  plan.barrier = Barrier::kPerLayer;
  cost.through_servers = true;
  Timeline timeline;
  EXPECT_DOUBLE_EQ(time_of(two_layers(), plan, cost, &timeline), 15);
  EXPECT_DOUBLE_EQ(timeline.messages[1].reduce_start.count(), 7);
  EXPECT_DOUBLE_EQ(timeline.messages[1].reduce_end.count(), 8.5);
  EXPECT_DOUBLE_EQ(timeline.messages[1].distribute_end.count(), 13);
  EXPECT_DOUBLE_EQ(timeline.messages[2].reduce_start.count(), 8.5);
  EXPECT_DOUBLE_EQ(timeline.messages[2].distribute_end.count(), 11.5);
  // With credit for both tensor 0 overtakes the second's push, though that has begun: 7 .. 10.
  plan.credit = 1_MiB;
  EXPECT_DOUBLE_EQ(time_of(two_layers(), plan, cost, &timeline), 15);
  EXPECT_DOUBLE_EQ(timeline.messages[2].distribute_end.count(), 10);
}

TEST(Simulate, AnUrgentMessageOvertakesWhatPassesTheServers) {
  // Tensor 1 (80 B: push and answer 2.5 s each) is pushed from 4 s on. Tensor 0 (1.5 s each) exists at 7:
  // 6.5 .. 7 of tensor 1's answer, tensor 0 at 7 .. 10, the rest of the answer at 10 .. 12. Layer 0 at 10 ..
  // 11, layer 1 at 12 .. 14.
  RoadCost cost = line_cost(1, 0.05);
  cost.through_servers = true;
  Plan plan = tensor_by_tensor();
  plan.priority = {1, 0};
  plan.order = Order::kPriority;
  plan.barrier = Barrier::kPerLayer;
  Timeline timeline;
  EXPECT_DOUBLE_EQ(time_of(two_layers(), plan, cost, &timeline), 14);
  EXPECT_DOUBLE_EQ(timeline.messages[0].distribute_end.count(), 12);
  EXPECT_DOUBLE_EQ(timeline.messages[1].distribute_end.count(), 10);
  // In the list's order tensor 1's answer goes first: 6.5 .. 9, tensor 0 until 12.
  plan.order = Order::kList;
  EXPECT_DOUBLE_EQ(time_of(two_layers(), plan, cost), 15);
}

/// Both tensors pushed each on its own, over servers.
Plan pulled(const std::vector<Message>& pulls, const std::vector<Step>& sequence) {
  Plan plan = tensor_by_tensor();
  plan.road = ParameterServer{2};
  plan.barrier = Barrier::kPerLayer;
  plan.pulls = pulls;
  plan.sequence = sequence;
  plan.credit = 1_MiB;
  return plan;
}

TEST(Simulate, APullBringsBackWhatSeveralPushesBrought) {
  // Pushed at 4 .. 6.5 and 7 .. 8.5; one pull of 120 B takes 3.5 s: 8.5 .. 12. Layers at 12 .. 13 .. 15.
  RoadCost cost = line_cost(1, 0.05);
  cost.through_servers = true;
  const Plan plan = pulled({{{{1, 0_B, 80_B}, {0, 0_B, 40_B}}}},
                           {{0, Stage::kReduce}, {1, Stage::kReduce}, {0, Stage::kDistribute}});
  for (const bool shared : {true, false}) {
    cost.shared_channel = shared;
    Timeline timeline;
    EXPECT_DOUBLE_EQ(time_of(two_layers(), plan, cost, &timeline), 15);
    EXPECT_DOUBLE_EQ(time_of(two_layers(), plan, cost), 15);
    EXPECT_DOUBLE_EQ(timeline.messages[0].reduce_start.count(), 4);
    EXPECT_DOUBLE_EQ(timeline.messages[0].reduce_end.count(), 6.5);
    EXPECT_DOUBLE_EQ(timeline.messages[1].reduce_end.count(), 8.5);
    ASSERT_EQ(timeline.pulls.size(), 1U);
    EXPECT_DOUBLE_EQ(timeline.pulls[0].released.count(), 8.5);
    EXPECT_DOUBLE_EQ(timeline.pulls[0].distribute_start.count(), 8.5);
    EXPECT_DOUBLE_EQ(timeline.pulls[0].distribute_end.count(), 12);
  }
}

TEST(Simulate, PartsOfAPushComeBackWhenTheyAreWanted) {
  // One push of 120 B: 7 .. 10.5. Back in halves: tensor 0 by 12, tensor 1 by 14.5.
  RoadCost cost = line_cost(1, 0.05);
  cost.through_servers = true;
  Plan plan = pulled({whole(0, 40), whole(1, 80)},
                     {{0, Stage::kReduce}, {0, Stage::kDistribute}, {1, Stage::kDistribute}});
  plan.messages = {{{{1, 0_B, 80_B}, {0, 0_B, 40_B}}}};
  plan.priority = {0};
  EXPECT_DOUBLE_EQ(time_of(two_layers(), plan, cost), 16.5);
  // With no credit left a pull still goes: it only asks.
  plan.credit = 0_B;
  EXPECT_DOUBLE_EQ(time_of(two_layers(), plan, cost), 16.5);
  plan.barrier = Barrier::kFull;
  EXPECT_DOUBLE_EQ(time_of(two_layers(), plan, cost), 17.5);
}

TEST(Simulate, PullsHaveAChannelOfTheirOwnWhereServersDo) {
  // Tensor 1 is summed at 6.5 and back at 9, while tensor 0 is pushed at 7 .. 8.5 and comes back at 9
  // .. 10.5.
  RoadCost cost = line_cost(1, 0.05);
  cost.through_servers = true;
  cost.shared_channel = false;
  const Plan plan =
      pulled({whole(1, 80), whole(0, 40)},
             {{0, Stage::kReduce}, {0, Stage::kDistribute}, {1, Stage::kReduce}, {1, Stage::kDistribute}});
  EXPECT_DOUBLE_EQ(time_of(two_layers(), plan, cost), 13.5);
  // On one channel the push, which comes first in the order where it is listed so, overtakes.
  cost.shared_channel = true;
  Plan urgent = plan;
  urgent.sequence = {
      {0, Stage::kReduce}, {1, Stage::kReduce}, {0, Stage::kDistribute}, {1, Stage::kDistribute}};
  EXPECT_DOUBLE_EQ(time_of(two_layers(), urgent, cost), 15.5);
}

TEST(Simulate, NothingOvertakesWhatSocketsHold) {
  // As above, but sockets hold 1 s ahead of the card: at 7 s what leaves of tensor 1's answer until 8, so
  // that tensor 0's push leaves at 8 .. 9.5. Meanwhile they have taken the rest of that answer, 9.5 .. 10.5,
  // and only then tensor 0's: 10.5 .. 12.
  RoadCost cost = line_cost(1, 0.05);
  cost.through_servers = true;
  cost.head_of_line = Seconds{1};
  Plan plan = tensor_by_tensor();
  plan.priority = {1, 0};
  plan.order = Order::kPriority;
  plan.barrier = Barrier::kPerLayer;
  Timeline timeline;
  time_of(two_layers(), plan, cost, &timeline);
  EXPECT_DOUBLE_EQ(timeline.messages[1].reduce_start.count(), 8);
  EXPECT_DOUBLE_EQ(timeline.messages[1].reduce_end.count(), 9.5);
  EXPECT_DOUBLE_EQ(timeline.messages[1].distribute_end.count(), 12);
  EXPECT_DOUBLE_EQ(timeline.messages[0].distribute_end.count(), 10.5);
  // The credit lets the next message start when sockets have taken the one before. Tensor 1 in halves (1.5 s
  // each way): they have the first one's push at 4.5 and take of the second one's, 5.5 .. 7, what leaves
  // until 6.5 before the first one's answer comes. That leaves at 6.5 .. 8.
  plan.messages = {{{{1, 0_B, 40_B}}}, {{{1, 40_B, 40_B}}}, whole(0, 40)};
  plan.priority = {1, 2, 0};
  time_of(two_layers(), plan, cost, &timeline);
  EXPECT_DOUBLE_EQ(timeline.messages[1].reduce_start.count(), 5.5);
  EXPECT_DOUBLE_EQ(timeline.messages[0].distribute_end.count(), 8);
}

TEST(Simulate, PriorityOvertakesWhatWaits) {
  // Tensor 1 in two pieces of 40 B (3 s each): the first goes at 4 .. 7; then the more urgent tensor 0 at 7
  // .. 10, then the second piece 10 .. 13. Layer 0 at 10 .. 11, layer 1 at 13 .. 15.
  Plan plan = tensor_by_tensor();
  plan.messages = {{{{1, 0_B, 40_B}}}, {{{1, 40_B, 40_B}}}, whole(0, 40)};
  plan.priority = {1, 2, 0};
  plan.order = Order::kPriority;
  plan.barrier = Barrier::kPerLayer;
  EXPECT_DOUBLE_EQ(time_of(two_layers(), plan, line_cost(1, 0.05)), 15);
}

TEST(Simulate, DedicatedServersDistributeWhileTheNextReduces) {
  // Either stage 0.5 + 0.025 m. Message 1: reduce 4 .. 6.5, distribute 6.5 .. 9. Message 0 (credit free):
  // reduce 7 .. 8.5, distribute 9 .. 10.5; forward 3: 13.5.
  RoadCost cost = line_cost(1, 0.05);
  cost.through_servers = true;
  cost.shared_channel = false;
  Plan plan = tensor_by_tensor();
  plan.road = ParameterServer{1, Placement::kDedicated, Assignment::kEven};
  plan.credit = 1_MiB;
  Timeline timeline;
  EXPECT_DOUBLE_EQ(time_of(two_layers(), plan, cost, &timeline), 13.5);
  EXPECT_DOUBLE_EQ(timeline.messages[1].reduce_end.count(), 8.5);
  EXPECT_DOUBLE_EQ(timeline.messages[1].distribute_start.count(), 9);
}

TEST(Simulate, DecoupledStagesGoWhereTheSequencePutsThem) {
  // Reduce 1 at 4 .. 6.5, reduce 0 at 7 .. 8.5, distribute 0 at 8.5 .. 10, distribute 1 at 10 .. 12.5.
  // Layer 0 at 10 .. 11, layer 1 at 12.5 .. 14.5.
  Plan plan = tensor_by_tensor();
  plan.sequence = {
      {0, Stage::kReduce}, {1, Stage::kReduce}, {1, Stage::kDistribute}, {0, Stage::kDistribute}};
  plan.barrier = Barrier::kPerLayer;
  Timeline timeline;
  EXPECT_DOUBLE_EQ(time_of(two_layers(), plan, line_cost(1, 0.05), &timeline), 14.5);
  EXPECT_DOUBLE_EQ(timeline.messages[1].distribute_end.count(), 10);
  EXPECT_DOUBLE_EQ(timeline.messages[0].distribute_end.count(), 12.5);
}

TEST(Simulate, UpdatesComeBetweenReturnAndForward) {
  Profile profile = two_layers();
  profile.layers[0].update = Seconds{0.5};
  profile.layers[1].update = Seconds{0.25};
  EXPECT_DOUBLE_EQ(time_of(profile, tensor_by_tensor(), line_cost(1, 0.05)), 15.75);
}

TEST(Simulate, ComputeSlowsWhileBytesMove) {
  // kappa 1 halves compute while the channel is kept. Message 1 leaves at 4 and keeps it 5 s: of layer 0's 3
  // s of backward, 2.5 s are done by 9, the rest by 9.5. Message 0: 9.5 .. 12.5. Forward 3 s
  // undisturbed: 15.5.
  RoadCost cost = line_cost(1, 0.05);
  cost.interference = 1;
  Timeline timeline;
  EXPECT_DOUBLE_EQ(time_of(two_layers(), tensor_by_tensor(), cost, &timeline), 15.5);
  EXPECT_DOUBLE_EQ(timeline.backward_end[0].count(), 9.5);
  EXPECT_DOUBLE_EQ(timeline.messages[1].released.count(), 9.5);
}

TEST(Simulate, ForwardSlowsWhileBytesMove) {
  // Order 0, 1 per layer, kappa 1: message 0 at 7 .. 10, message 1 at 10 .. 15. Layer 0's second takes two:
  // 10 .. 12; layer 1 at 15 .. 17.
  RoadCost cost = line_cost(1, 0.05);
  cost.interference = 1;
  Plan plan = tensor_by_tensor();
  std::swap(plan.messages[0], plan.messages[1]);
  plan.barrier = Barrier::kPerLayer;
  Timeline timeline;
  EXPECT_DOUBLE_EQ(time_of(two_layers(), plan, cost, &timeline), 17);
  EXPECT_DOUBLE_EQ(timeline.forward_end[0].count(), 12);
}

TEST(Simulate, StragglingIsAddedOnce) {
  RoadCost cost = line_cost(1, 0.05);
  cost.straggling = Seconds{0.5};
  EXPECT_DOUBLE_EQ(time_of(two_layers(), tensor_by_tensor(), cost), 15.5);
}

TEST(Simulate, SaysWhatBinds) {
  const Workload work{two_layers()};
  const Plan plan = tensor_by_tensor();
  EXPECT_EQ(simulate(work, plan, line_cost(0, 1e-6)).binding, Binding::kCompute);
  EXPECT_EQ(simulate(work, plan, line_cost(10, 1e-6)).binding, Binding::kLatency);
  EXPECT_EQ(simulate(work, plan, line_cost(0, 1)).binding, Binding::kBandwidth);
  RoadCost cost = line_cost(0, 1);
  cost.server_binds = true;
  EXPECT_EQ(simulate(work, plan, cost).binding, Binding::kServer);
}

TEST(Simulate, MarksMessagesOutsideTheMeasuredRange) {
  RoadCost cost = line_cost(1, 0.05);
  EXPECT_FALSE(simulate(Workload{two_layers()}, tensor_by_tensor(), cost).extrapolated);
  cost.measured_largest = 79_B;
  EXPECT_TRUE(simulate(Workload{two_layers()}, tensor_by_tensor(), cost).extrapolated);
}

TEST(Simulate, CountsTimeUnderWayOnce) {
  // 4 .. 9 and 9 .. 12; of these 8 s, 5 are exposed (15 - 10).
  const Prediction p = simulate(Workload{two_layers()}, tensor_by_tensor(), line_cost(1, 0.05));
  EXPECT_DOUBLE_EQ(p.communication.count(), 8);
  EXPECT_DOUBLE_EQ(p.exposed.count(), 5);
  EXPECT_DOUBLE_EQ(p.hidden().count(), 3);
}

// --- Random jobs -----------------------------------------------------------------------------------------

struct Job {
  Profile profile;
  Plan plan;
  RoadCost cost;
};

double uniform(std::mt19937_64& random, double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(random);
}

Profile random_profile(std::mt19937_64& random) {
  Profile profile;
  const std::size_t layers = 1 + random() % 8;
  for (std::size_t i = 0; i < layers; ++i) {
    Layer layer{"l",
                Seconds{uniform(random, 0, 2)},
                Seconds{uniform(random, 0, 3)},
                Seconds{uniform(random, 0, 0.2)},
                {},
                0};
    const std::size_t tensors = random() % 3;
    for (std::size_t t = 0; t < tensors; ++t) layer.tensors.push_back({"t", Bytes{4 * (1 + random() % 50)}});
    profile.layers.push_back(layer);
  }
  return profile;
}

/// Every tensor cut at random places, the pieces shuffled and grouped at random.
std::vector<Message> random_messages(const Profile& profile, std::mt19937_64& random) {
  std::vector<Piece> pieces;
  TensorId id = 0;
  for (const TensorRef& tensor : tensors_of(profile)) {
    std::uint64_t offset = 0;
    while (offset < tensor.bytes.count) {
      const std::uint64_t left = (tensor.bytes.count - offset) / 4;
      const std::uint64_t length = random() % 2 == 0 ? 4 * left : 4 * (1 + random() % left);
      pieces.push_back({id, Bytes{offset}, Bytes{length}});
      offset += length;
    }
    ++id;
  }
  std::shuffle(pieces.begin(), pieces.end(), random);
  std::vector<Message> messages;
  for (const Piece& piece : pieces) {
    if (messages.empty() || random() % 2 == 0) messages.emplace_back();
    messages.back().pieces.push_back(piece);
  }
  return messages;
}

StageCost random_stage(std::mt19937_64& random) {
  const double alpha = uniform(random, 0, 1), beta = uniform(random, 0, 0.05), part = uniform(random, 0, 1);
  return {Curve{Seconds{alpha}, SecondsPerByte{beta}}, Curve{Seconds{alpha * part}, SecondsPerByte{beta}}};
}

Job random_job(std::mt19937_64& random) {
  Job job;
  job.profile = random_profile(random);
  Plan& plan = job.plan;
  plan.workers = 2;
  plan.messages = random_messages(job.profile, random);
  plan.priority.resize(plan.messages.size());
  std::iota(plan.priority.begin(), plan.priority.end(), -3);
  std::shuffle(plan.priority.begin(), plan.priority.end(), random);
  plan.release = random() % 4 == 0 ? Release::kBackward : Release::kGradient;
  plan.barrier = random() % 2 == 0 ? Barrier::kFull : Barrier::kPerLayer;
  const Bytes credits[] = {0_B, 64_B, 200_B, 1_MiB};
  plan.credit = credits[random() % 4];
  const auto kind = random() % 3;
  if (kind == 1) plan.order = Order::kPriority;
  if (kind == 2) {
    std::vector<std::uint32_t> order(plan.messages.size() * 2);
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i / 2;
    std::shuffle(order.begin(), order.end(), random);
    std::vector<bool> seen(plan.messages.size());
    for (const std::uint32_t message : order) {
      plan.sequence.push_back({message, seen[message] ? Stage::kDistribute : Stage::kReduce});
      seen[message] = true;
    }
  }
  job.cost.both = random_stage(random);
  job.cost.reduce = random_stage(random);
  job.cost.distribute = random_stage(random);
  job.cost.rounds = {1, kind == 2 ? 1 : 0};
  job.cost.copy = SecondsPerByte{random() % 2 == 0 ? 0 : 0.01};
  job.cost.measured_largest = 1_MiB;
  return job;
}

/// Steps of one round each, or without credit of any number of them, told without anything that makes it
/// fast: in the order in which they start one after the other keeps the channel.
class Reference {
 public:
  explicit Reference(const Job& job)
      : job_(job), work_(job.profile), back_(job.plan.messages.size(), kNever) {}

  double iteration() {
    if (job_.plan.order == Order::kPriority) {
      by_priority();
    } else {
      in_order();
    }
    double now = work_.total_backward;
    if (job_.plan.barrier == Barrier::kFull) {
      for (const double end : back_) now = std::max(now, end);
    }
    for (std::uint32_t layer = 0; layer < work_.layers(); ++layer) {
      for (std::size_t m = 0; m < back_.size(); ++m) {
        for (const Piece& piece : job_.plan.messages[m].pieces) {
          const bool own = work_.tensors[piece.tensor].layer == layer;
          if (own && job_.plan.barrier == Barrier::kPerLayer) now = std::max(now, back_[m]);
        }
      }
      now += work_.update[layer] + work_.forward[layer];
    }
    return now;
  }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  double released(std::size_t m) const {
    if (job_.plan.release == Release::kBackward) return work_.total_backward;
    double at = 0;
    for (const Piece& piece : job_.plan.messages[m].pieces) {
      at = std::max(at, work_.ready[work_.tensors[piece.tensor].layer]);
    }
    return at;
  }
  Bytes bytes(std::size_t m) const { return message_bytes(job_.plan.messages[m]); }
  double copy(std::size_t m) const {
    return is_one_stretch(job_.plan.messages[m], work_.tensors) ? 0 : (job_.cost.copy * bytes(m)).count();
  }
  /// When those that have started have no more than the credit left to send.
  double credit_allows() const {
    Bytes left = job_.plan.credit;
    for (std::size_t i = flights_.size(); i-- > 0;) {
      const Sending& one = flights_[i];
      if (one.bytes > left) {
        const double share = static_cast<double>(left.count) / static_cast<double>(one.bytes.count);
        return one.until - share * (one.until - one.from);
      }
      left = left - one.bytes;
    }
    return 0;
  }
  /// What a message that a credit limits takes longer since others have not sent all yet.
  double behind_others(double from, double waits) const {
    const std::uint64_t most = (job_.plan.sequence.empty() ? 1 : 2) * work_.total_bytes;
    if (job_.plan.credit.count >= most) return 0;
    double left = 0, others = 0;
    for (const Sending& one : flights_) {
      if (one.until <= from) continue;
      left += one.until - std::max(from, one.from);
      ++others;
    }
    return std::min(2 * left, others * waits);
  }
  /// Of what a message takes longer than it keeps the channel only the last round's part comes after its last
  /// byte.
  double through(const StageCost& cost, double last_share, double from, std::size_t m, double copying) {
    double alone = cost.alone(bytes(m)).count() + copying;
    const double service = std::max(from, free_);
    const double kept = std::min(alone, cost.occupancy(bytes(m)).count() + copying);
    if (alone > kept) alone += behind_others(from, alone - kept);
    free_ = service + alone - (alone - kept) * last_share;
    flights_.push_back({service, free_, bytes(m)});
    return service + alone;
  }
  void coupled(std::size_t m, double start) {
    back_[m] = through(job_.cost.both, job_.cost.rounds.last_share(), start, m, copy(m));
  }

  void in_order() {
    std::vector<Step> steps = job_.plan.sequence;
    const bool decoupled = !steps.empty();
    if (!decoupled) {
      for (std::uint32_t m = 0; m < back_.size(); ++m) steps.push_back({m, Stage::kReduce});
    }
    double start = 0;
    std::vector<double> reduced(back_.size());
    for (const Step& step : steps) {
      const std::size_t m = step.message;
      start = std::max({start, step.stage == Stage::kReduce ? released(m) : reduced[m], credit_allows()});
      if (!decoupled) {
        coupled(m, start);
        continue;
      }
      if (step.stage == Stage::kReduce) {
        reduced[m] =
            through(job_.cost.reduce, job_.cost.rounds.last_share(Stage::kReduce), start, m, copy(m) / 2);
      } else {
        back_[m] = through(job_.cost.distribute, job_.cost.rounds.last_share(Stage::kDistribute), start, m,
                           copy(m) / 2);
      }
    }
  }

  void by_priority() {
    std::vector<bool> started(back_.size());
    double now = 0;
    for (std::size_t left = back_.size(); left > 0;) {
      std::size_t best = back_.size();
      double next = kNever;
      for (std::size_t m = 0; m < back_.size(); ++m) {
        if (started[m]) continue;
        if (released(m) > now) {
          next = std::min(next, released(m));
        } else if (best == back_.size() || job_.plan.priority[m] < job_.plan.priority[best]) {
          best = m;
        }
      }
      if (best == back_.size() || credit_allows() > now) {
        now = best == back_.size() ? next : std::min(next, credit_allows());
        continue;
      }
      started[best] = true;
      coupled(best, now);
      --left;
    }
  }

  struct Sending {
    double from, until;
    Bytes bytes;
  };
  const Job& job_;
  const Workload work_;
  std::vector<double> back_;
  std::vector<Sending> flights_;
  double free_ = 0;
};

TEST(Simulate, TrafficSlowsWhileComputeRuns) {
  // Contention 1: traffic runs at half speed before 7 s. Message 1 (5 s of traffic) has done 1.5 s of it by
  // then and ends at 10.5, message 0 (3 s) at 13.5; forward 3 s: 16.5.
  const Workload work(two_layers(), {1, 1});
  Timeline timeline;
  const Prediction p = simulate(work, tensor_by_tensor(), line_cost(1, 0.05), &timeline);
  EXPECT_DOUBLE_EQ(p.iteration.count(), 16.5);
  EXPECT_DOUBLE_EQ(simulate(work, tensor_by_tensor(), line_cost(1, 0.05)).iteration.count(), 16.5);
  EXPECT_DOUBLE_EQ(p.compute.count(), 10);
  EXPECT_DOUBLE_EQ(p.exposed.count(), 6.5);
  EXPECT_DOUBLE_EQ(p.communication.count(), 9.5);  // 4 to 13.5
  EXPECT_DOUBLE_EQ(timeline.backward_end[0].count(), 7);
  EXPECT_DOUBLE_EQ(timeline.messages[0].released.count(), 4);
  EXPECT_DOUBLE_EQ(timeline.messages[0].distribute_end.count(), 10.5);
  EXPECT_DOUBLE_EQ(timeline.messages[1].distribute_end.count(), 13.5);
  EXPECT_DOUBLE_EQ(timeline.forward_start[0].count(), 13.5);
  EXPECT_DOUBLE_EQ(timeline.forward_end[1].count(), 16.5);
}

TEST(Simulate, ContentionCountsInTheForwardPassToo) {
  // Message 0 (3 s of traffic) from 7 to 10, when nothing is computed. Then layer a runs from 10 to 11 beside
  // message 1 (5 s), which gets half a second done and ends at 11 + 4.5; layer b until 17.5.
  Plan plan = tensor_by_tensor();
  plan.barrier = Barrier::kPerLayer;
  plan.messages = {whole(0, 40), whole(1, 80)};
  const Workload work(two_layers(), {1, 1});
  EXPECT_DOUBLE_EQ(simulate(work, plan, line_cost(1, 0.05)).iteration.count(), 17.5);
  Timeline timeline;
  EXPECT_DOUBLE_EQ(simulate(work, plan, line_cost(1, 0.05), &timeline).iteration.count(), 17.5);
  EXPECT_DOUBLE_EQ(timeline.messages[1].distribute_end.count(), 15.5);
}

TEST(Simulate, EverybodyWaitsForTheSlowestCompute) {
  // Twice the compute: gradients at 8 and 14 s. Message 1: 8 to 13. Message 0: 14 to 17. Forward 6 s: 23.
  const Workload work(two_layers(), {2, 0});
  const Prediction p = simulate(work, tensor_by_tensor(), line_cost(1, 0.05));
  EXPECT_DOUBLE_EQ(p.iteration.count(), 23);
  EXPECT_DOUBLE_EQ(p.compute.count(), 20);
}

/// Dedicated ones, to which messages go whole. 80 B keep the workers' card for 1 s and their server for 4 s
/// each way.
RoadCost two_servers_in_turn() {
  RoadCost cost;
  cost.reduce = {Curve{Seconds{0}, SecondsPerByte{0.05}}, Curve{Seconds{0}, SecondsPerByte{0.0125}}};
  cost.distribute = cost.both = cost.reduce;
  cost.through_servers = true;
  cost.shared_channel = false;
  cost.in_turn = 2;
  return cost;
}

TEST(Simulate, AServerInTurnTakesOneMessageAfterTheOther) {
  // Two dedicated servers. A message of 80 B keeps the workers' card for 1 s and its server for 4 s each way;
  // one of 40 B for 0.5 and 2 s. Gradients 1 and 0 exist at 4 and 7 s.
  RoadCost cost = two_servers_in_turn();
  cost.measured_largest = 1_MiB;
  Plan plan = tensor_by_tensor();
  plan.credit = 1_MiB;
  // Message 0 (80 B) to server 0: in 4 to 8, out 8 to 12. Message 1 (40 B) to server 1: 7 to 9, 9 to 11.
  EXPECT_DOUBLE_EQ(time_of(two_layers(), plan, cost), 15);
  // Tensor 1 cut in two for both servers: each in 4 to 6, out 6 to 8. Message 2 to server 0: 7 to 9 to 11.
  plan.messages = {{{{1, 0_B, 40_B}}}, {{{1, 40_B, 40_B}}}, whole(0, 40)};
  plan.priority = {2, 1, 0};
  EXPECT_NEAR(time_of(two_layers(), plan, cost), 14, 1e-12);
  // One server for all: tensor 1's halves in 4 to 6 to 8, message 2 in 8 to 10, out 10 to 12.
  cost.in_turn = 1;
  EXPECT_NEAR(time_of(two_layers(), plan, cost), 15, 1e-12);
}

TEST(Simulate, AMessageGoesToTheServerThatThePlanNames) {
  // As above with tensor 1 cut in two: 14 s where the halves go to servers 0 and 1, 15 s where all of them go
  // to one.
  RoadCost cost = two_servers_in_turn();
  Plan plan = tensor_by_tensor();
  plan.credit = 1_MiB;
  plan.messages = {{{{1, 0_B, 40_B}}}, {{{1, 40_B, 40_B}}}, whole(0, 40)};
  plan.priority = {2, 1, 0};
  plan.server = {1, 0, 1};
  EXPECT_NEAR(time_of(two_layers(), plan, cost), 14, 1e-12);
  plan.server = {1, 1, 1};
  EXPECT_NEAR(time_of(two_layers(), plan, cost), 15, 1e-12);
}

TEST(Simulate, AMessageMayHaveAWindowOfItsOwn) {
  // As in CreditOverlapsLatencies and without a credit, by the window of the message that starts second.
  RoadCost cost = line_cost(3, 0.05);
  cost.both.occupancy = Curve{Seconds{1}, SecondsPerByte{0.05}};
  Plan plan = tensor_by_tensor();
  const double apart = time_of(two_layers(), plan, cost);
  plan.window = {0_B, 1_MiB};
  EXPECT_DOUBLE_EQ(time_of(two_layers(), plan, cost), 17.5);
  EXPECT_LT(17.5, apart);
  plan.window = {1_MiB, 0_B};
  EXPECT_DOUBLE_EQ(time_of(two_layers(), plan, cost), apart);
}

TEST(Simulate, WindowsThatAreAlikeAreACredit) {
  std::mt19937_64 random(20261126);
  for (int round = 0; round < 2000; ++round) {
    Job job = random_job(random);
    const double by_credit = time_of(job.profile, job.plan, job.cost);
    job.plan.window.assign(job.plan.messages.size(), job.plan.credit);
    job.plan.credit = Bytes{random() % 1000};
    // Credits are kept to a thousandth of a byte.
    ASSERT_NEAR(time_of(job.profile, job.plan, job.cost), by_credit, 1e-4) << "round " << round;
  }
}

TEST(Simulate, AgreesWithANaiveReferenceOnRandomPlans) {
  std::mt19937_64 random(20261121);
  for (int round = 0; round < 5000; ++round) {
    Job job = random_job(random);
    if (job.plan.order == Order::kPriority) job.plan.credit = 0_B;  // nobody overtakes
    if (job.plan.credit == 0_B) {
      const auto some = [&] { return static_cast<int>(random() % 20); };
      job.cost.rounds = {1 + some(), job.plan.sequence.empty() ? some() : 1 + some()};
      job.cost.rounds.last = uniform(random, 0, 1);
      if (job.plan.order == Order::kList) job.cost.head_of_line = Seconds{uniform(random, 0, 1)};
    }
    Timeline timeline;
    // Credits are kept to a thousandth of a byte, which takes no longer than 60 us here.
    ASSERT_NEAR(time_of(job.profile, job.plan, job.cost), Reference{job}.iteration(), 1e-4)
        << "round " << round;
    ASSERT_NEAR(time_of(job.profile, job.plan, job.cost, &timeline), Reference{job}.iteration(), 1e-4);
  }
}

TEST(Simulate, PriorityWithoutOvertakingIsAListOfWhatStarted) {
  std::mt19937_64 random(20261127);
  int reordered = 0;
  for (int round = 0; round < 2000; ++round) {
    Job job = random_job(random);
    job.plan.sequence.clear();
    job.plan.order = Order::kPriority;
    job.plan.credit = Bytes{random() % 200};
    std::ranges::shuffle(job.plan.priority, random);
    job.cost.rounds = {1 + static_cast<int>(random() % 9), 1 + static_cast<int>(random() % 9)};
    job.cost.head_of_line = Seconds{0.5 * static_cast<double>(random() % 5)};
    const Workload work(job.profile);
    FlatPlan flat(job.plan, work);
    flat.overtakes = false;
    Simulator simulator(work);
    const double time = simulator.run(flat, job.cost).iteration.count();
    Plan listed = job.plan;
    listed.order = Order::kList;
    listed.messages.clear();
    for (const std::uint32_t message : simulator.started())
      listed.messages.push_back(job.plan.messages[message]);
    ASSERT_EQ(listed.messages.size(), job.plan.messages.size());
    ASSERT_NEAR(time_of(job.profile, listed, job.cost), time, 1e-9) << "round " << round;
    reordered += listed.messages == job.plan.messages ? 0 : 1;
  }
  EXPECT_GT(reordered, 1000);
}

TEST(Simulate, WithoutLatenciesRoundsChangeWhoIsFirstButNotWhenAllHaveEnded) {
  std::mt19937_64 random(20261122);
  for (int round = 0; round < 2000; ++round) {
    Job job = random_job(random);
    job.plan.sequence.clear();
    job.plan.barrier = Barrier::kFull;
    job.plan.credit = 1_MiB;
    job.cost.both.occupancy = job.cost.both.alone;
    const double one_round = time_of(job.profile, job.plan, job.cost);
    job.cost.rounds = {1 + static_cast<int>(random() % 9), static_cast<int>(random() % 9)};
    job.cost.head_of_line = Seconds{0.5 * static_cast<double>(random() % 5)};
    ASSERT_NEAR(time_of(job.profile, job.plan, job.cost), one_round, 1e-9) << "round " << round;
  }
}

TEST(Simulate, NoMessageIsFasterThanAlone) {
  std::mt19937_64 random(20261123);
  for (int round = 0; round < 2000; ++round) {
    Job job = random_job(random);
    job.cost.rounds = {1 + static_cast<int>(random() % 9), 1 + static_cast<int>(random() % 9)};
    job.cost.rounds.last = uniform(random, 0, 1);
    job.cost.head_of_line = Seconds{0.5 * static_cast<double>(random() % 5)};
    if (!job.plan.sequence.empty()) continue;
    Timeline timeline;
    time_of(job.profile, job.plan, job.cost, &timeline);
    for (std::size_t m = 0; m < job.plan.messages.size(); ++m) {
      const MessageSpan& span = timeline.messages[m];
      ASSERT_GE(span.distribute_end - span.released,
                job.cost.both.alone(message_bytes(job.plan.messages[m])) - Seconds{1e-9})
          << "round " << round;
    }
  }
}

TEST(Simulate, MoreBytesAreNeverFasterInListOrder) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 2000; ++round) {
    Job job = random_job(random);
    job.plan.order = Order::kList;
    job.cost.interference = random() % 2 == 0 ? 0 : 0.3;
    if (job.plan.messages.empty()) continue;
    const double before = time_of(job.profile, job.plan, job.cost);
    // One message at a time, or no limit: in between, a message that no longer fits the credit lets nobody
    // pass, but one that ends later may let two that were apart go together.
    if (job.plan.credit != 0_B && job.plan.credit != 1_MiB) continue;
    std::vector<Piece>& pieces = job.plan.messages[random() % job.plan.messages.size()].pieces;
    pieces[random() % pieces.size()].length += 40_B;
    ASSERT_GE(time_of(job.profile, job.plan, job.cost), before - 1e-9) << "round " << round;
  }
}

TEST(Simulate, SlowerComputeUnderTrafficNeverHelpsAPlanInListOrder) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 1000; ++round) {
    Job job = random_job(random);
    const double before = time_of(job.profile, job.plan, job.cost);
    if (job.plan.order == Order::kPriority) continue;
    // In between, a message that starts later may find fewer others to wait for.
    if (job.plan.credit != 0_B && job.plan.credit != 1_MiB) continue;
    job.cost.interference = 0.5;
    const double after = time_of(job.profile, job.plan, job.cost);
    ASSERT_GE(after, before - 1e-9);
  }
}

TEST(Simulate, FusingWithoutLatencyNeverHelps) {
  std::mt19937_64 random(9);
  for (int round = 0; round < 1000; ++round) {
    Job job = random_job(random);
    Plan& plan = job.plan;
    // Neighbours in the order in which gradients appear, under a full barrier, no start-up.
    plan.sequence.clear();
    plan.order = Order::kList;
    plan.credit = 0_B;
    job.cost = line_cost(0, uniform(random, 0, 0.1));
    plan.messages.clear();
    const std::vector<TensorRef> tensors = tensors_of(job.profile);
    for (auto id = static_cast<TensorId>(tensors.size()); id-- > 0;) {
      plan.messages.push_back(whole(id, tensors[id].bytes.count));
    }
    if (plan.messages.size() < 2) continue;
    const double apart = time_of(job.profile, plan, job.cost);
    const std::size_t at = random() % (plan.messages.size() - 1);
    plan.messages[at].pieces.push_back(plan.messages[at + 1].pieces.front());
    plan.messages.erase(plan.messages.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    ASSERT_GE(time_of(job.profile, plan, job.cost), apart - 1e-9);
  }
}

TEST(Simulator, GivesTheSameAnswersWhenUsedAgain) {
  std::mt19937_64 random(11);
  const Profile profile = random_profile(random);
  const Workload work{profile};
  Simulator simulator(work);
  for (int round = 0; round < 200; ++round) {
    Job job = random_job(random);
    job.plan.messages = random_messages(profile, random);
    job.plan.sequence.clear();
    job.plan.order = Order::kList;
    job.cost.interference = round % 2 == 0 ? 0 : 0.4;
    EXPECT_EQ(simulator.run(job.plan, job.cost).iteration, simulate(work, job.plan, job.cost).iteration);
  }
}

TEST(Simulator, SaysWhatBindsWhateverItHasSimulatedBefore) {
  // 20 s of start-ups in a row on one channel; before that 200 s of bytes on each of two.
  const Workload work{two_layers()};
  Simulator simulator(work);
  RoadCost two_channels = line_cost(0, 5);
  two_channels.shared_channel = false;
  EXPECT_EQ(simulator.run(tensor_by_tensor(), two_channels).binding, Binding::kBandwidth);
  EXPECT_EQ(simulator.run(tensor_by_tensor(), line_cost(10, 0.0001)).binding, Binding::kLatency);
}

TEST(Simulator, TakesAsLongInWhateverInnerLoop) {
  // Compute that traffic hardly slows is simulated by the loop that knows of everything. Where two messages
  // wait at the same moment rounding may decide which of them is first.
  constexpr int kRounds = 1000, kTies = kRounds / 200;
  std::mt19937_64 random(15);
  int others = 0;
  for (int round = 0; round < kRounds; ++round) {
    Job job = random_job(random);
    if (random() % 2 == 0) job.cost.head_of_line = Seconds{uniform(random, 0, 1)};
    if (job.plan.sequence.empty()) {
      job.cost.rounds = {1 + static_cast<int>(random() % 5), 1 + static_cast<int>(random() % 5)};
      job.cost.in_turn = static_cast<int>(random() % 4);
      if (job.cost.in_turn > 0) job.cost.rounds = {1, 1};
      job.cost.through_servers = job.cost.in_turn > 0;
    }
    const double alone = time_of(job.profile, job.plan, job.cost);
    job.cost.interference = 1e-14;
    // Credits are kept to a thousandth of a byte.
    if (std::abs(time_of(job.profile, job.plan, job.cost) - alone) > 1e-4) ++others;
  }
  EXPECT_LE(others, kTies);
}

TEST(FlatPlan, RanksMessagesByTheirPriorities) {
  const Workload work{two_layers()};
  Plan plan = tensor_by_tensor();
  plan.order = Order::kPriority;
  for (const std::vector<std::int32_t>& priority :
       {std::vector<std::int32_t>{1, 0}, {40, 3}, {-1, -7}, {2, 1}, {1, -1}}) {
    plan.priority = priority;
    EXPECT_EQ((FlatPlan{plan, work}.rank), (std::vector<std::uint32_t>{1, 0}));
  }
}

TEST(Simulator, TakesNoLongerThanTheLimitOrGivesUp) {
  std::mt19937_64 random(12);
  int given_up = 0;
  for (int round = 0; round < 2000; ++round) {
    const Job job = random_job(random);
    const Workload work{job.profile};
    const FlatPlan plan{job.plan, work};
    const FlatRoad road{job.cost};
    Simulator simulator(work);
    const Seconds time = simulator.run(plan, job.cost).iteration;
    EXPECT_EQ(simulator.time(plan, road, time), time) << round;
    const std::uint64_t before = simulator.events();
    const Seconds cut_off = simulator.time(plan, road, 0.9 * time);
    EXPECT_TRUE(cut_off == time || std::isinf(cut_off.count())) << round;
    const std::uint64_t whole = before / 2;  // two runs to the end so far
    if (simulator.events() - before < whole) ++given_up;
    EXPECT_EQ(simulator.run(plan, job.cost).iteration, time) << "after giving up, round " << round;
  }
  EXPECT_GT(given_up, 200);
}

/// A ring whose ranks are out of step by half of what a message's bytes take, at most by so many seconds.
RoadCost skewed_cost(double most) {
  RoadCost cost = line_cost(1, 0.05);
  cost.skew = {{0.5, {}}, Seconds{most}};
  return cost;
}

Plan in_one_message() {
  Plan plan = tensor_by_tensor();
  plan.messages = {{{whole(1, 80).pieces[0], whole(0, 40).pieces[0]}}};
  plan.priority = {0};
  return plan;
}

TEST(Skew, OfOneMessageIsNoMoreThanItsBytesTellAndSocketsHold) {
  // 7 + (1 + 6) + 3, less half of the 6.
  EXPECT_DOUBLE_EQ(time_of(two_layers(), in_one_message(), line_cost(1, 0.05)), 17);
  EXPECT_DOUBLE_EQ(time_of(two_layers(), in_one_message(), skewed_cost(100)), 14);
  EXPECT_DOUBLE_EQ(time_of(two_layers(), in_one_message(), skewed_cost(2)), 15);
  RoadCost late = skewed_cost(100);
  late.skew.of_ring.latency = Seconds{1};
  EXPECT_DOUBLE_EQ(time_of(two_layers(), in_one_message(), late), 15);
  late.skew.of_ring.latency = Seconds{4};
  EXPECT_DOUBLE_EQ(time_of(two_layers(), in_one_message(), late), 17);
}

TEST(Skew, OfSeveralMessagesWithoutAPauseIsNone) {
  EXPECT_DOUBLE_EQ(time_of(two_layers(), tensor_by_tensor(), skewed_cost(100)), 15);
}

TEST(Skew, IsNoLongerThanThePauseBeforeTheLastMessage) {
  // Message 1: 4 .. 4 + 1 + 80 * 0.01 = 5.8. Message 0: 7 .. 8.4, after a pause of 1.2.
  RoadCost cost = line_cost(1, 0.01);
  EXPECT_DOUBLE_EQ(time_of(two_layers(), tensor_by_tensor(), cost), 11.4);
  cost.skew = {{0.5, {}}, Seconds{100}};
  EXPECT_DOUBLE_EQ(time_of(two_layers(), tensor_by_tensor(), cost), 11.4 - 0.5 * 0.4);
  cost.skew = {{5, {}}, Seconds{100}};  // 2 s by its bytes
  EXPECT_DOUBLE_EQ(time_of(two_layers(), tensor_by_tensor(), cost), 11.4 - 1.2);
}

TEST(Skew, OfATimeWithALimitIsCounted) {
  const Profile profile = two_layers();
  const Workload work(profile);
  const RoadCost cost = skewed_cost(100);
  Simulator simulator(work);
  const FlatPlan plan(in_one_message(), work);
  EXPECT_DOUBLE_EQ(simulator.time(plan, FlatRoad(cost), Seconds{14.5}).count(), 14);
}

}  // namespace
}  // namespace commtune
