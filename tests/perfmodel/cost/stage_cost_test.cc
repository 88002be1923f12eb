#include "perfmodel/cost/stage_cost.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "perfmodel/base/error.h"
#include "perfmodel/cost/road_formula.h"
#include "perfmodel/fit/curve_ops.h"

namespace commtune {
namespace {

constexpr double kAlpha = 10e-6;    // latency of a message that goes alone
constexpr double kOverhead = 2e-6;  // of which its channel is kept
constexpr double kBeta = 1e-9;      // per byte
constexpr double kGamma = 0.25e-9;  // summing a byte
constexpr Bytes kMessage{4'000'000};

Fit fit_of(Curve curve, Bytes smallest = 4_B, Bytes largest = 64_MiB) {
  Fit fit;
  fit.curve = std::move(curve);
  fit.smallest = smallest;
  fit.largest = largest;
  return fit;
}

LinkFit link(double alpha, double overhead, double beta) {
  LinkFit fit;
  fit.alone = fit_of(Curve{Seconds{alpha}, SecondsPerByte{beta}});
  fit.streamed = fit_of(Curve{Seconds{overhead}, SecondsPerByte{beta}});
  return fit;
}

Cluster cluster_of(int hosts, int slots = 1) {
  Cluster cluster;
  cluster.name = "test";
  for (int i = 0; i < hosts; ++i) cluster.hosts.push_back({"h" + std::to_string(i), slots});
  cluster.links[LinkClass::kInterHost] = link(kAlpha, kOverhead, kBeta);
  cluster.links[LinkClass::kIntraHost] = link(kAlpha / 10, kOverhead / 10, kBeta / 10);
  cluster.reduce_seconds_per_byte.value = kGamma;
  return cluster;
}

double alone(const StageCost& cost, Bytes m = kMessage) { return cost.alone(m).count(); }
double occupied(const StageCost& cost, Bytes m = kMessage) { return cost.occupancy(m).count(); }

Road a2a(Collective algorithm) { return AllReduce{algorithm}; }
Road ps(int servers, Placement placement, Assignment assignment = Assignment::kEven,
        LocalSum local_sum = LocalSum::kNone) {
  return ParameterServer{servers, placement, assignment, local_sum};
}
Road ps_behind_sum(int servers, Placement placement) {
  return ps(servers, placement, Assignment::kEven, LocalSum::kFirst);
}

TEST(RoadCost, OneWorkerCostsNothing) {
  for (const Road& road :
       {a2a(Collective::kRing), ps(1, Placement::kColocated), ps(2, Placement::kDedicated)}) {
    const RoadCost cost = road_cost(road, Cluster{}, 1);
    EXPECT_EQ(alone(cost.both), 0);
    EXPECT_EQ(cost.straggling, Seconds{0});
  }
}

TEST(RoadCost, RingSendsOneShareToEachPeerInEitherStage) {
  // 4 ranks: 3 steps of 1 MB each way, whose chunks hide all latencies but the last, and 3 MB summed in the
  // first stage: 0.75 ms.
  const RoadCost cost = road_cost(a2a(Collective::kRing), cluster_of(4), 4);
  const double step = 2e-6 + 1e-3, last = 10e-6 + 1e-3;
  EXPECT_NEAR(alone(cost.reduce), 2 * step + last + 0.75e-3, 1e-12);
  EXPECT_NEAR(alone(cost.distribute), 2 * step + last, 1e-12);
  EXPECT_NEAR(alone(cost.both), 5 * step + last + 0.75e-3, 1e-12);
  // With many in flight only the overheads add up.
  EXPECT_NEAR(occupied(cost.both), 6 * (2e-6 + 1e-3) + 0.75e-3, 1e-12);
  EXPECT_EQ(cost.basis, Basis::kFormula);
  EXPECT_TRUE(cost.shared_channel);
}

TEST(RoadCost, HalvingDoublingPaysLogarithmicLatency) {
  // 8 ranks: shares 1/2, 1/4, 1/8: 3 latencies and 7/8 of the bytes in either stage.
  const RoadCost cost = road_cost(a2a(Collective::kHalvingDoubling), cluster_of(8), 8);
  EXPECT_NEAR(alone(cost.reduce), 3 * 10e-6 + 3.5e6 * (kBeta + kGamma), 1e-12);
  EXPECT_NEAR(alone(cost.distribute), 3 * 10e-6 + 3.5e6 * kBeta, 1e-12);
}

TEST(RoadCost, HalvingDoublingFoldsWorkersBeyondAPowerOfTwo) {
  // 6 ranks: 4 take part (1/2 + 1/4), after two were folded in: a whole message more each way.
  const RoadCost cost = road_cost(a2a(Collective::kHalvingDoubling), cluster_of(6), 6);
  EXPECT_NEAR(alone(cost.reduce), 3 * 10e-6 + (3e6 + 4e6) * (kBeta + kGamma), 1e-12);
}

TEST(RoadCost, RecursiveDoublingLeavesNothingToDistribute) {
  // 8 ranks: 3 exchanges of the whole message.
  const RoadCost cost = road_cost(a2a(Collective::kRecursiveDoubling), cluster_of(8), 8);
  EXPECT_NEAR(alone(cost.both), 3 * (10e-6 + 4e-3 + 1e-3), 1e-12);
  EXPECT_EQ(alone(cost.distribute), 0);
}

TEST(RoadCost, OneShotPaysOneLatencyAndAllBytes) {
  // 8 ranks: 7 whole messages each way, and a sum that keeps up with them.
  const RoadCost cost = road_cost(a2a(Collective::kOneShot), cluster_of(8), 8);
  EXPECT_NEAR(alone(cost.both), 10e-6 + 6 * kOverhead + 7 * 4e-3, 1e-9);
  EXPECT_EQ(alone(cost.distribute), 0);
  // 2 hosts of 4: 4 x 4 messages through each card.
  const RoadCost shared = road_cost(a2a(Collective::kOneShot), cluster_of(2, 4), 8);
  EXPECT_NEAR(alone(shared.both), 10e-6 + 15 * kOverhead + 16 * 4e-3, 1e-9);
}

TEST(RoadCost, DoubleBinaryTreePipelinesItsBytes) {
  // 8 ranks: depth 3, each byte passes once a stage.
  const RoadCost cost = road_cost(a2a(Collective::kDoubleBinaryTree), cluster_of(8), 8);
  EXPECT_NEAR(alone(cost.reduce), 3 * 10e-6 + 4e-3 + 1e-3, 1e-12);
  EXPECT_NEAR(alone(cost.distribute), 3 * 10e-6 + 4e-3, 1e-12);
}

TEST(RoadCost, HierarchicalStaysInsideHostsFirst) {
  // 2 hosts of 4. Inside: 3 steps of 1 MB at a tenth of the cost. Between: all four shares at once on one
  // card, 1 step of 2 MB. Summed: 3/4 inside, 1/2 between.
  const RoadCost cost = road_cost(a2a(Collective::kHierarchical), cluster_of(2, 4), 8);
  EXPECT_NEAR(alone(cost.reduce),
              2 * (0.2e-6 + 0.1e-3) + (1e-6 + 0.1e-3) + (10e-6 + 2e-3) + (3e6 + 2e6) * kGamma, 1e-12);
}

TEST(RoadCost, RingIsPacedByItsSlowestLink) {
  Cluster cluster = cluster_of(2, 4);
  EXPECT_NEAR(alone(road_cost(a2a(Collective::kRing), cluster, 8).distribute),
              6 * (2e-6 + 0.5e-3) + (10e-6 + 0.5e-3), 1e-12);
  // One host only: its own links.
  EXPECT_NEAR(alone(road_cost(a2a(Collective::kRing), cluster, 4).distribute),
              2 * (0.2e-6 + 0.1e-3) + (1e-6 + 0.1e-3), 1e-12);
}

TEST(RoadCost, ARingsStepsTakeTheLatencyOfTheLinksThatTheyCross) {
  // Of 4 ranks' steps half stay inside hosts, where a message takes a tenth. One chunk of 1000 B each, and
  // the last step between hosts.
  const double outside = kAlpha + kBeta * 1e3, inside = outside / 10;
  EXPECT_NEAR(alone(road_cost(a2a(Collective::kRing), cluster_of(2, 2), 4).both, Bytes{4000}),
              5 * (outside + inside) / 2 + outside + kGamma * 3e3, 1e-12);
  EXPECT_NEAR(alone(road_cost(a2a(Collective::kRing), cluster_of(4), 4).both, Bytes{4000}),
              6 * outside + kGamma * 3e3, 1e-12);
}

TEST(RoadCost, DedicatedServersUseTwoChannels) {
  // 4 workers, 2 servers: a server's card takes 4/2 of the message, and 4 messages of which 3 add an
  // overhead; summing 2 m at 0.25 ns hides behind 2 m at 1 ns.
  const RoadCost cost = road_cost(ps(2, Placement::kDedicated), cluster_of(6), 4);
  EXPECT_FALSE(cost.shared_channel);
  EXPECT_TRUE(cost.server_binds);
  EXPECT_NEAR(alone(cost.reduce), 10e-6 + 3 * 2e-6 + 8e-3, 1e-12);
  EXPECT_NEAR(occupied(cost.reduce), 2e-6 + 3 * 2e-6 + 8e-3, 1e-12);
  EXPECT_NEAR(alone(cost.distribute), 10e-6 + 3 * 2e-6 + 8e-3, 1e-12);
}

TEST(RoadCost, RoundsAreThoseOfAlgorithmsAndEachConnectionHoldsAsMuch) {
  Cluster cluster = cluster_of(8);
  cluster.head_of_line_seconds.value = 4e-3;
  cluster.connection_head_of_line_seconds.value = 1e-3;
  struct Expected {
    Collective algorithm;
    int workers, reduce, distribute, connections;
  };
  for (const auto& [algorithm, workers, reduce, distribute, connections] :
       {Expected{Collective::kRing, 8, 7, 7, 1}, Expected{Collective::kRing, 2, 1, 1, 1},
        Expected{Collective::kHalvingDoubling, 8, 3, 3, 3},
        Expected{Collective::kHalvingDoubling, 6, 3, 3, 2},
        Expected{Collective::kRecursiveDoubling, 8, 3, 0, 3},
        Expected{Collective::kRecursiveDoubling, 6, 4, 0, 2},
        Expected{Collective::kDoubleBinaryTree, 8, 3, 3, 4},
        Expected{Collective::kDoubleBinaryTree, 4, 2, 2, 3}, Expected{Collective::kOneShot, 8, 1, 0, 7}}) {
    const RoadCost cost = road_cost(a2a(algorithm), cluster, workers);
    EXPECT_EQ(cost.rounds.reduce, reduce) << to_string(algorithm) << ' ' << workers;
    EXPECT_EQ(cost.rounds.distribute, distribute) << to_string(algorithm) << ' ' << workers;
    EXPECT_NEAR(cost.head_of_line.count(), connections * 1e-3, 1e-12)
        << to_string(algorithm) << ' ' << workers;
    EXPECT_FALSE(cost.opaque);
  }
}

TEST(RoadCost, RoundsInsideHostsCountToo) {
  Cluster cluster = cluster_of(3);
  for (Host& host : cluster.hosts) host.slots = 2;
  const RoadCost cost = road_cost(a2a(Collective::kHierarchical), cluster, 6);
  EXPECT_EQ(cost.rounds.reduce, 3);
  EXPECT_EQ(cost.rounds.distribute, 3);
}

TEST(RoadCost, MessagesAreOnTheirWayWhereRoundsGoBetweenHosts) {
  const auto on_the_way = [](const Road& road, int hosts, int slots) {
    return road_cost(road, cluster_of(hosts, slots), hosts * slots).on_the_way.count();
  };
  // What a round takes inside a host, a tenth, is the hosts' work.
  constexpr double kWay = kAlpha - kAlpha / 10;
  EXPECT_NEAR(on_the_way(a2a(Collective::kRing), 4, 1), 6 * kWay, 1e-12);
  EXPECT_NEAR(on_the_way(a2a(Collective::kRing), 1, 4), 0, 1e-12);
  // Of 14 steps from rank to rank each fourth, and begun ones count.
  EXPECT_NEAR(on_the_way(a2a(Collective::kRing), 2, 4), 4 * kWay, 1e-12);
  EXPECT_NEAR(on_the_way(a2a(Collective::kHierarchical), 3, 2), 4 * kWay, 1e-12);
  EXPECT_NEAR(on_the_way(a2a(Collective::kRecursiveDoubling), 2, 2), kWay, 1e-12);
  EXPECT_NEAR(on_the_way(a2a(Collective::kHalvingDoubling), 2, 2), 2 * kWay, 1e-12);
  EXPECT_NEAR(on_the_way(a2a(Collective::kRecursiveDoubling), 2, 3), 4 * kWay, 1e-12);
  EXPECT_NEAR(on_the_way(ps(4, Placement::kColocated), 4, 1), 2 * kWay, 1e-12);
  EXPECT_NEAR(on_the_way(ps(4, Placement::kColocated), 1, 4), 0, 1e-12);
  Cluster far = cluster_of(4);
  far.hosts[2].slowdown.latency = 3;
  EXPECT_NEAR(road_cost(a2a(Collective::kRing), far, 4).on_the_way.count(), 6 * (3 * kAlpha - kAlpha / 10),
              1e-12);
}

TEST(RoadCost, LastRoundInsideHostsHidesLittle) {
  const RoadCost cost = road_cost(a2a(Collective::kHierarchical), cluster_of(3, 2), 6);
  // Of 4 rounds between hosts and 2 inside them at a tenth, the last is one inside.
  EXPECT_NEAR(cost.rounds.last, 0.1 / (4.2 / 6), 1e-9);
  EXPECT_GT(until_sent(cost)(4_B), 0.95 * cost.both.alone(4_B));
  // Measured to take three times as long: the rest is work, and the last round has a sixth of it.
  Cluster busy = cluster_of(3, 2);
  OperationFit fit{a2a(Collective::kHierarchical), Operation::kAllReduce, 6, {}, {}};
  fit.alone = fit_of(Curve{3 * cost.both.alone.least_alpha(), cost.both.alone.least_beta()});
  busy.operations.push_back(fit);
  const RoadCost worked = road_cost(a2a(Collective::kHierarchical), busy, 6);
  EXPECT_NEAR(worked.rounds.last, (0.1 + 2 * 4.2 / 6) / (3 * 4.2 / 6), 1e-9);
  const RoadCost ring = road_cost(a2a(Collective::kRing), cluster_of(3, 2), 6);
  EXPECT_DOUBLE_EQ(ring.rounds.last, 1);
  const RoadCost one_a_host = road_cost(a2a(Collective::kHierarchical), cluster_of(3), 3);
  EXPECT_DOUBLE_EQ(one_a_host.rounds.last, 1);
}

TEST(RoadCost, LastRoundBetweenHostsHidesWhatRoundsInsideDoNot) {
  // Rounds at a distance of 1 inside hosts, at a tenth, then one of 2 between them: its latency is what is
  // left.
  const RoadCost doubling = road_cost(a2a(Collective::kRecursiveDoubling), cluster_of(2, 2), 4);
  EXPECT_NEAR(doubling.rounds.last, 1 / (1.1 / 2), 1e-9);
  EXPECT_NEAR(doubling.rounds.last_share(), 1 / 1.1, 1e-9);
  EXPECT_LT(until_sent(doubling)(4_B).count(), 0.3 * doubling.both.alone(4_B).count());
  // Halving begins between hosts, doubling ends there: of four rounds two, and of the last stage's two one.
  const RoadCost halving = road_cost(a2a(Collective::kHalvingDoubling), cluster_of(2, 2), 4);
  EXPECT_NEAR(halving.rounds.last_share(), 1 / 2.2, 1e-9);
  EXPECT_NEAR(halving.rounds.last_share(Stage::kDistribute), 1 / 1.1, 1e-9);
  // Three workers a host are at no distance that is a power of two.
  EXPECT_EQ(road_cost(a2a(Collective::kRecursiveDoubling), cluster_of(2, 3), 6).rounds.last, 1);
  EXPECT_EQ(road_cost(a2a(Collective::kRecursiveDoubling), cluster_of(4), 4).rounds.last, 1);
}

TEST(RoadCost, WhatSocketsHoldAtServers) {
  Cluster cluster = cluster_of(6);
  cluster.head_of_line_seconds.value = 4e-3;
  const RoadCost servers = road_cost(ps(2, Placement::kColocated), cluster, 4);
  EXPECT_TRUE(servers.through_servers);
  EXPECT_EQ(servers.head_of_line, Seconds{4e-3});
  EXPECT_EQ(servers.rounds.reduce, 1);
  EXPECT_EQ(servers.rounds.distribute, 1);
  EXPECT_FALSE(road_cost(a2a(Collective::kRing), cluster, 4).through_servers);
}

TEST(RoadCost, ALocalSumIsARoundInsideTheHostsInEachStage) {
  const RoadCost cost = road_cost(ps_behind_sum(4, Placement::kColocated), cluster_of(2, 2), 4);
  EXPECT_EQ(cost.rounds.reduce, 2);
  EXPECT_EQ(cost.rounds.distribute, 2);
  EXPECT_LT(cost.rounds.last, 1);  // inside the host, where latencies are a tenth
  EXPECT_TRUE(cost.rounds.first_as_last);
  const RoadCost one_a_host = road_cost(ps_behind_sum(4, Placement::kColocated), cluster_of(4), 4);
  EXPECT_EQ(one_a_host.rounds.both(), 2);
}

TEST(RoadCost, AsManyDedicatedServersAsWorkersLeaveTheWorkersCardsInCharge) {
  const RoadCost cost = road_cost(ps(4, Placement::kDedicated), cluster_of(8), 4);
  EXPECT_FALSE(cost.server_binds);
  EXPECT_NEAR(alone(cost.reduce), 10e-6 + 3 * 2e-6 + 4e-3, 1e-12);
}

TEST(RoadCost, SummingBindsServersThatAddSlowly) {
  Cluster cluster = cluster_of(8);
  cluster.reduce_seconds_per_byte.value = 3e-9;  // 4 workers on 4 servers: m at 3 ns against m at 1 ns
  const RoadCost cost = road_cost(ps(4, Placement::kDedicated), cluster, 4);
  EXPECT_TRUE(cost.server_binds);
  EXPECT_NEAR(alone(cost.reduce), 10e-6 + 3 * 2e-6 + 12e-3, 1e-12);
  EXPECT_NEAR(alone(cost.distribute), 10e-6 + 3 * 2e-6 + 4e-3, 1e-12);
}

TEST(RoadCost, ColocatedServersOnEveryHostMoveTheRingsBytes) {
  // N = S = 4: 3/4 m of own push and 3/4 m of answers leave every card, as the ring's 2 * 3/4 m.
  const RoadCost cost = road_cost(ps(4, Placement::kColocated), cluster_of(4), 4);
  EXPECT_TRUE(cost.shared_channel);
  EXPECT_FALSE(cost.server_binds);
  const double overheads = (4 + 4 - 2) * 2e-6;
  EXPECT_NEAR(occupied(cost.both), overheads + 6e-3, 1e-12);
  EXPECT_NEAR(alone(cost.both), 2 * (10e-6 + 2 * 2e-6 + 3e-3), 1e-12);
}

TEST(RoadCost, ARingsStepTakesAChunksLatencyOrItsSegmentsBytes) {
  // 1 ms away, 1 ns a byte; 4 ranks, 6 steps.
  Cluster cluster = cluster_of(4);
  cluster.links[LinkClass::kInterHost] = link(1e-3, 2e-6, 1e-9);
  cluster.reduce_seconds_per_byte.value = 0;
  const auto takes = [&](std::uint64_t segment) {
    return alone(road_cost(a2a(Collective::kRing), cluster, 4).both, Bytes{4 * segment});
  };
  const double chunk = static_cast<double>(TransferTraits{}.short_chunk().count),
               longest = static_cast<double>(TransferTraits{}.chunk.count);
  EXPECT_NEAR(takes(10'000), 6 * (1e-3 + 10e-6), 1e-9) << "one chunk";
  EXPECT_NEAR(takes(40'000), 5 * (1e-3 + chunk * 1e-9) + 1e-3 + 40e-6, 1e-9) << "of short chunks";
  EXPECT_NEAR(takes(200'000), 5 * (1e-3 + 50e-6) + 1e-3 + 200e-6, 1e-9) << "of four";
  EXPECT_NEAR(takes(800'000), 5 * (1e-3 + longest * 1e-9) + 1e-3 + 800e-6, 1e-9) << "of the longest chunks";
  EXPECT_NEAR(takes(8'000'000), 5 * (2e-6 + 8e-3) + 1e-3 + 8e-3, 1e-9) << "bytes hide the latency";
}

TEST(RoadCost, ARingsStepsGoByTheTraitsThatTheClusterWasProbedWith) {
  Cluster cluster = cluster_of(4);
  cluster.links[LinkClass::kInterHost] = link(1e-3, 2e-6, 1e-9);
  cluster.reduce_seconds_per_byte.value = 0;
  cluster.traits = {.chunk = Bytes{200'000}, .uncut = Bytes{20'000}, .cuts = 2};
  const auto takes = [&](std::uint64_t segment) {
    return alone(road_cost(a2a(Collective::kRing), cluster, 4).both, Bytes{4 * segment});
  };
  EXPECT_NEAR(takes(20'000), 5 * (1e-3 + 15e-6) + 1e-3 + 20e-6, 1e-9) << "of short chunks";
  EXPECT_NEAR(takes(200'000), 5 * (1e-3 + 100e-6) + 1e-3 + 200e-6, 1e-9) << "of two";
  EXPECT_NEAR(takes(800'000), 5 * (1e-3 + 200e-6) + 1e-3 + 800e-6, 1e-9) << "of the longest chunks";
}

TEST(RoadCost, OneColocatedServerCarriesEverybodysBytes) {
  // Its card takes 3 m and gives 3 m, at the same time but for the first chunk, of 60 KiB.
  const RoadCost cost = road_cost(ps(1, Placement::kColocated), cluster_of(4), 4);
  EXPECT_TRUE(cost.server_binds);
  const double first = 10e-6 + 2 * 2e-6 + 3 * kBeta * static_cast<double>(TransferTraits{}.chunk.count);
  EXPECT_NEAR(alone(cost.both), first + (2e-6 + 12e-3) + (10e-6 + 2 * 2e-6), 1e-12);
  EXPECT_NEAR(alone(cost.both, 1_KiB), 2 * (10e-6 + 2 * 2e-6 + 3 * kBeta * 1024), 1e-12) << "one chunk";
  EXPECT_NEAR(occupied(cost.both), 3 * 2e-6 + 12e-3, 1e-12);
}

TEST(RoadCost, HashedMessagesGoWholeToOneServer) {
  // 4 workers, 2 dedicated servers: alone, all 4 m enter one card; in a stream half of that on average.
  const RoadCost cost = road_cost(ps(2, Placement::kDedicated, Assignment::kHashed), cluster_of(6), 4);
  EXPECT_NEAR(alone(cost.reduce), 10e-6 + 3 * 2e-6 + 16e-3, 1e-12);
  EXPECT_NEAR(occupied(cost.reduce), 2 * 2e-6 + 8e-3, 1e-12);
  EXPECT_EQ(cost.in_turn, 2);
  EXPECT_EQ(road_cost(ps(2, Placement::kDedicated), cluster_of(6), 4).in_turn, 0);
}

TEST(RoadCost, ServersInTurnAreOnTheHostsOfTheirWorkers) {
  const ParameterServer road{3, Placement::kColocated, Assignment::kHashed};
  const ServerHosts alone = road_cost(road, cluster_of(4), 4).server_hosts;
  EXPECT_EQ(alone.hosts(3), 4);
  EXPECT_EQ(alone.with_servers(3), 3);
  EXPECT_EQ(alone.of(2, 3), 2);
  EXPECT_TRUE(alone.connections_bind);
  Cluster one_slow = cluster_of(4);
  one_slow.hosts[2].slowdown.time_per_byte = 2;
  EXPECT_FALSE(road_cost(road, one_slow, 4).server_hosts.connections_bind);
  Cluster one_host = cluster_of(1);
  one_host.hosts[0].slots = 4;
  one_host.links[LinkClass::kIntraHost] = one_host.links[LinkClass::kInterHost];
  EXPECT_FALSE(road_cost(road, one_host, 4).server_hosts.connections_bind);
  const ServerHosts in_pairs{4, 2};
  EXPECT_EQ(in_pairs.with_servers(8), 4);
  EXPECT_EQ(in_pairs.with_servers(3), 2);
  EXPECT_EQ(in_pairs.of(1, 8), 0);
  EXPECT_EQ(in_pairs.of(7, 8), 3);
}

TEST(RoadCost, MessagesGoWholeToTheOneHostThatHasServers) {
  const auto in_turn = [](const Road& road, const Cluster& cluster) {
    const RoadCost cost = road_cost(road, cluster, 4);
    EXPECT_TRUE(cost.in_turn == 0 || cost.server_hosts.connections_bind);
    return cost.in_turn;
  };
  Cluster pairs = cluster_of(2, 2), one_slow = cluster_of(4);
  one_slow.hosts[2].slowdown.time_per_byte = 2;
  EXPECT_EQ(in_turn(ps(1, Placement::kColocated), cluster_of(4)), 1);
  EXPECT_EQ(in_turn(ps(1, Placement::kColocated), one_slow), 1);
  EXPECT_EQ(in_turn(ps_behind_sum(2, Placement::kColocated), pairs), 1);
  EXPECT_EQ(in_turn(ps(2, Placement::kColocated), cluster_of(4)), 0);
  EXPECT_EQ(in_turn(ps(1, Placement::kDedicated), cluster_of(5)), 0);
  EXPECT_EQ(in_turn(ps(1, Placement::kColocated), cluster_of(1, 4)), 0) << "all share one memory";
}

TEST(RoadCost, WhereASlowHostWithoutServersBindsAllWaitForThatOne) {
  // Host 3 pushes m and gets m; the others push 2/3 m and answer with m, which is more unless host 3 is slow.
  const auto cost_of = [](double slow, const Road& road) {
    Cluster cluster = cluster_of(4);
    cluster.hosts[3].slowdown.time_per_byte = slow;
    return road_cost(road, cluster, 4);
  };
  const Road beside = ps(3, Placement::kColocated);
  const RoadCost slow = cost_of(1.7, beside);
  EXPECT_EQ(slow.in_turn, 1);
  EXPECT_TRUE(slow.server_hosts.connections_bind);
  EXPECT_EQ(slow.segments, 3);
  EXPECT_EQ(cost_of(1.6, beside).in_turn, 0);
  EXPECT_EQ(cost_of(1.7, ps(4, Placement::kColocated)).in_turn, 0) << "it has a server as well";
  const RoadCost whole = cost_of(1.7, ps(3, Placement::kColocated, Assignment::kHashed));
  EXPECT_FALSE(whole.server_hosts.connections_bind) << "each goes to one server";
  EXPECT_EQ(whole.segments, 1);
}

TEST(RoadCost, HashedServersAreCalibratedByEvenOnes) {
  // Two even servers took twice the formula's time per byte: so do two hashed ones, unless they were
  // measured.
  Cluster cluster = cluster_of(6);
  const Road even = ps(2, Placement::kDedicated), hashed = ps(2, Placement::kDedicated, Assignment::kHashed);
  const double before = alone(road_cost(hashed, cluster, 4).reduce);
  OperationFit fit;
  fit.road = even;
  fit.operation = Operation::kPushPull;
  fit.workers = 4;
  const RoadCost formula = road_cost(even, cluster, 4);
  fit.alone = fit_of(
      Curve{formula.both.alone.least_alpha(), SecondsPerByte{2 * formula.both.alone.least_beta().value}});
  cluster.operations.push_back(fit);
  EXPECT_NEAR(alone(road_cost(hashed, cluster, 4).reduce), 2 * before, before / 100);
  cluster.operations.back().road = hashed;
  EXPECT_EQ(road_cost(hashed, cluster, 4).basis, Basis::kMeasured);
}

TEST(RoadCost, AServerInTurnHandlesAMessageForAsLongAsItsBytesPassItsCard) {
  // Alone a message was measured to take half of what the formula says, as one stage hides behind the other.
  // Its server is kept by all workers' bytes of each stage nevertheless.
  Cluster cluster = cluster_of(4);
  const Road hashed = ps(4, Placement::kColocated, Assignment::kHashed);
  const RoadCost formula = road_cost(hashed, cluster, 4);
  OperationFit fit{hashed, Operation::kPushPull, 4, {}, {}};
  fit.alone = fit_of(
      Curve{formula.both.alone.least_alpha(), SecondsPerByte{formula.both.alone.least_beta().value / 2}});
  cluster.operations.push_back(fit);
  const RoadCost measured = road_cost(hashed, cluster, 4);
  EXPECT_NEAR(alone(measured.both), alone(formula.both) / 2, alone(formula.both) / 100);
  EXPECT_DOUBLE_EQ(alone(measured.reduce), alone(formula.reduce));
  EXPECT_DOUBLE_EQ(alone(measured.distribute), alone(formula.distribute));
}

Cluster with_slow_host(Cluster cluster, std::size_t host, HostSlowdown mode) {
  cluster.hosts[host].slowdown = mode;
  return cluster;
}

TEST(RoadCost, TheSlowestHostPacesARing) {
  // Host 2's card takes 3 times as long per byte and twice as long to start: each step waits for it.
  const Cluster cluster = with_slow_host(cluster_of(4), 2, {2, 3, 1});
  EXPECT_NEAR(alone(road_cost(a2a(Collective::kRing), cluster, 4).distribute),
              2 * (4e-6 + 3e-3) + (20e-6 + 3e-3), 1e-12);
  EXPECT_NEAR(alone(road_cost(a2a(Collective::kHalvingDoubling), cluster, 4).distribute),
              2 * 20e-6 + 3 * 3e-3, 1e-12);
  // Two workers do not use it.
  EXPECT_NEAR(alone(road_cost(a2a(Collective::kRing), cluster, 2).distribute), 10e-6 + 2e-3, 1e-12);
}

TEST(RoadCost, TheSlowestServerPacesDedicatedServers) {
  // 4 workers, 4 servers: every card carries m; the last server's takes 3 times as long.
  const Cluster slow_server = with_slow_host(cluster_of(8), 7, {1, 3, 1});
  const RoadCost cost = road_cost(ps(4, Placement::kDedicated), slow_server, 4);
  EXPECT_NEAR(alone(cost.reduce), 10e-6 + 3 * 2e-6 + 12e-3, 1e-12);
  EXPECT_TRUE(cost.server_binds);
  // A slow worker's card: m at 3 ns. Two servers carry 2 m each at 1 ns, which hides behind it.
  const Cluster slow_worker = with_slow_host(cluster_of(8), 0, {1, 3, 1});
  const RoadCost other = road_cost(ps(2, Placement::kDedicated), slow_worker, 4);
  EXPECT_NEAR(alone(other.reduce), 10e-6 + 3 * 2e-6 + 12e-3, 1e-12);
  EXPECT_FALSE(other.server_binds);
}

TEST(RoadCost, ColocatedServersKeepAwayFromASlowHost) {
  // Two servers, on hosts 0 and 1. Host 3's card is twice as slow and carries its own push, m at 2 ns: less
  // than a server's 1/2 m + 3/2 m at 1 ns in a stream. With four servers it carries 3/4 m + 3/4 m at 2 ns.
  const Cluster cluster = with_slow_host(cluster_of(4), 3, {1, 2, 1});
  EXPECT_NEAR(occupied(road_cost(ps(2, Placement::kColocated), cluster, 4).both), 4 * 2e-6 + 8e-3, 1e-12);
  EXPECT_NEAR(occupied(road_cost(ps(4, Placement::kColocated), cluster, 4).both), 6 * 2e-6 + 12e-3, 1e-12);
}

TEST(RoadCost, ColocatedServersMayBeginAtAnyWorker) {
  // Hosts of one worker: three servers spare host 1, which carries its own push alone: m at 2 ns, where the
  // others' cards carry 2/3 m + 3/3 m at 1 ns.
  const Cluster cluster = with_slow_host(cluster_of(4), 1, {1, 2, 1});
  const auto from = [](int servers, int first) {
    return Road{ParameterServer{servers, Placement::kColocated, Assignment::kEven, LocalSum::kNone, first}};
  };
  EXPECT_NEAR(occupied(road_cost(from(3, 2), cluster, 4).both), 5 * 2e-6 + 8e-3, 1e-12);
  EXPECT_NEAR(occupied(road_cost(from(3, 0), cluster, 4).both), 5 * 2e-6 + 2 * 4e-3 * 5 / 3, 1e-12);
  // Hosts of two: one server on either of hosts 0 and 1, beside workers 1 and 2. Each host sends the
  // halves of its two pushes that go elsewhere, and half the sum to each of the two workers elsewhere.
  const RoadCost across = road_cost(from(2, 1), cluster_of(2, 2), 4);
  EXPECT_NEAR(occupied(across.both), 4 * 2e-6 + 4e-3 * 2, 1e-12);
  EXPECT_THROW(road_cost(from(3, 4), cluster, 4), Error);
}

TEST(RoadCost, DedicatedServersOnAnotherHostAreReachedOverItsLink) {
  // All 4 workers on one host of 4 slots, whose card carries 4 m; one server on the next.
  const RoadCost cost = road_cost(ps(1, Placement::kDedicated), cluster_of(2, 4), 4);
  EXPECT_NEAR(alone(cost.reduce), 10e-6 + 3 * 2e-6 + 16e-3, 1e-12);
}

TEST(RoadCost, DedicatedServersOnOneHostShareItsCard) {
  // 4 workers on one host, 2 servers on the other: both carry 4 m.
  const RoadCost cost = road_cost(ps(2, Placement::kDedicated), cluster_of(2, 4), 4);
  EXPECT_NEAR(alone(cost.reduce), 10e-6 + 3 * 2e-6 + 16e-3, 1e-12);
}

// Streamed, 4 MB take 2e-4 + 16e-3 s by a line through small messages, which is more than the links do. Where
// these do not tell, at the rate that one message alone reaches its bytes take 4e6 * 5e-9 = 20e-3 s, which
// is the larger and stays below the 21e-3 s of the message alone.
TEST(RoadCost, MeasuredFitsAreUsedButStreamingBeatsNoBandwidth) {
  Cluster cluster = cluster_of(4);
  OperationFit fit;
  fit.road = a2a(Collective::kRing);
  fit.operation = Operation::kAllReduce;
  fit.workers = 4;
  fit.alone = fit_of(Curve{Seconds{1e-3}, SecondsPerByte{5e-9}}, 1_KiB, 1_MiB);
  fit.streamed = fit_of(Curve{Seconds{2e-4}, SecondsPerByte{4e-9}}, 1_KiB, 64_KiB);
  cluster.operations.push_back(fit);
  const RoadCost cost = road_cost(a2a(Collective::kRing), cluster, 4);
  EXPECT_EQ(cost.basis, Basis::kMeasured);
  EXPECT_NEAR(alone(cost.both), 1e-3 + 20e-3, 1e-12);
  EXPECT_NEAR(occupied(cost.both), 2e-4 + 16e-3, 1e-12);
  EXPECT_EQ(cost.measured_smallest, 1_KiB);
  EXPECT_EQ(cost.measured_largest, 1_MiB);
  // Stages that were not measured share it as the formula says.
  EXPECT_NEAR(alone(cost.reduce) + alone(cost.distribute), alone(cost.both), 1e-12);
  EXPECT_GT(alone(cost.reduce), alone(cost.distribute));
  EXPECT_THAT(cost.explanation, testing::HasSubstr("measured all-reduce"));

  Cluster of_one_host = cluster_of(1, 4);
  of_one_host.operations = cluster.operations;
  EXPECT_NEAR(occupied(road_cost(fit.road, of_one_host, 4).both), 20e-3, 1e-12);
  cluster.links.clear();
  EXPECT_NEAR(occupied(road_cost(fit.road, cluster, 4).both), 20e-3, 1e-12);
}

// One server: pushes of one message overlap with pulls of another, so streamed ones were measured faster than
// one alone. 4 MB take 2e-4 + 16e-3 s, as the streams of up to 4 MB did; 100 MB no less than at their rate.
TEST(RoadCost, StreamingMayBeatAMessageAloneWhereThatWasMeasured) {
  Cluster cluster = cluster_of(4);
  OperationFit fit;
  fit.road = ps(1, Placement::kColocated);
  fit.operation = Operation::kPushPull;
  fit.workers = 4;
  fit.alone = fit_of(Curve{Seconds{1e-3}, SecondsPerByte{5e-9}}, 1_KiB, 8_MiB);
  fit.streamed = fit_of(Curve{Seconds{2e-4}, SecondsPerByte{4e-9}}, 1_KiB, 4_MiB);
  cluster.operations.push_back(fit);
  cluster.links.clear();
  const RoadCost cost = road_cost(fit.road, cluster, 4);
  EXPECT_NEAR(occupied(cost.both), 2e-4 + 16e-3, 1e-12);
  const double best = (2e-4 + 4e-9 * (4 << 20)) / (4 << 20);
  EXPECT_NEAR(cost.both.occupancy(Bytes{100'000'000}).count(), best * 1e8, 1e-9);
}

// Recursive doubling was measured one message at a time, the ring's streams as well: those of recursive
// doubling, 2 steps instead of 6, cost above the links what the ring's do.
TEST(RoadCost, BeyondMessagesShorterThanAChunkBytesFollowAsThoseOfAStream) {
  const Road tree = a2a(Collective::kDoubleBinaryTree);
  const double start_up = 9e-3, per_byte = 60e-9, in_stream = 50e-9;
  const auto bytes = [](Bytes m) { return static_cast<double>(m.count); };
  OperationFit fit{tree, Operation::kAllReduce, 4, {}, {}};
  fit.streamed = fit_of(Curve{Seconds{60e-6}, SecondsPerByte{in_stream}}, 4_B, 16_KiB);
  const auto cost_of = [&](Bytes largest, double rate) {
    fit.alone = fit_of(Curve{Seconds{start_up}, SecondsPerByte{rate}}, 4_B, largest);
    Cluster cluster = cluster_of(4);
    cluster.operations = {fit};
    return road_cost(tree, cluster, 4);
  };
  const RoadCost cost = cost_of(32_KiB, per_byte);
  EXPECT_NEAR(alone(cost.both, 32_KiB), start_up + per_byte * bytes(32_KiB), 1e-12);
  EXPECT_NEAR(alone(cost.both, 512_KiB), start_up + per_byte * bytes(32_KiB) + in_stream * bytes(480_KiB),
              1e-12);
  // A longer one has shown what chunks do; and bytes alone that cost less than in a stream stay as they are.
  EXPECT_NEAR(alone(cost_of(64_KiB, per_byte).both, 512_KiB), start_up + per_byte * bytes(512_KiB), 1e-12);
  EXPECT_NEAR(alone(cost_of(32_KiB, 40e-9).both, 512_KiB), start_up + 40e-9 * bytes(512_KiB), 1e-12);
}

TEST(RoadCost, BeyondMessagesShorterThanAChunkTheFirstChunkGrows) {
  // Through one server, whose answers follow the pushes a chunk behind.
  const Road road = ps(1, Placement::kColocated);
  Cluster cluster = cluster_of(4);
  const Formula formula = formula_of(road, cluster, 4);
  OperationFit fit{road, Operation::kPushPull, 4, {}, {}};
  fit.alone = fit_of(Curve{Seconds{1e-3}, SecondsPerByte{9e-9}}, 4_B, 32_KiB);
  fit.streamed = fit_of(Curve{Seconds{10e-6}, SecondsPerByte{4e-9}}, 4_B, 16_KiB);
  cluster.operations = {fit};
  const RoadCost cost = road_cost(road, cluster, 4);
  const auto lag = [&](Bytes m) { return alone(formula.both, m) - occupied(formula.both, m); };
  for (const Bytes m : {128_KiB, 512_KiB, 4_MiB}) {
    const double in_stream = 4e-9 * static_cast<double>((m - 32_KiB).count);
    EXPECT_NEAR(alone(cost.both, m), alone(cost.both, 32_KiB) + in_stream + lag(m) - lag(32_KiB), 2e-6)
        << m.count;
  }
  EXPECT_GT(lag(512_KiB), 2 * lag(32_KiB));
}

TEST(RoadCost, HoweverFastTheFirstChunkGrowsNoStartUpIsNegative) {
  const Road road = ps(1, Placement::kColocated);
  for (int i = 1; i <= 200; ++i) {
    Cluster cluster = cluster_of(4);
    OperationFit fit{road, Operation::kPushPull, 4, {}, {}};
    fit.alone = fit_of(Curve{Seconds{0}, SecondsPerByte{i * 0.1e-9}}, 4_B, 32_KiB);
    fit.streamed = fit_of(Curve{Seconds{0}, SecondsPerByte{i * 0.07e-9}}, 4_B, 16_KiB);
    cluster.operations = {fit};
    EXPECT_NO_THROW(road_cost(road, cluster, 4)) << i;
  }
}

TEST(RoadCost, AMeasuredRoadWithoutStreamsHidesLatencyAsAnotherOnesStreamsDo) {
  Cluster cluster = cluster_of(4);
  OperationFit doubling{a2a(Collective::kRecursiveDoubling), Operation::kAllReduce, 4, {}, {}};
  doubling.alone = fit_of(Curve{Seconds{1e-3}, SecondsPerByte{2.5e-9}}, 1_KiB, 1_MiB);
  cluster.operations.push_back(doubling);
  EXPECT_EQ(occupied(road_cost(doubling.road, cluster, 4).both, 1_KiB), 1e-3 + 2.5e-9 * 1024);

  OperationFit ring{a2a(Collective::kRing), Operation::kAllReduce, 4, {}, {}};
  ring.alone = fit_of(Curve{Seconds{3e-3}, SecondsPerByte{1.7e-9}}, 1_KiB, 1_MiB);
  ring.streamed = fit_of(Curve{Seconds{3 * 6 * kOverhead}, SecondsPerByte{1.7e-9}}, 1_KiB, 1_MiB);
  cluster.operations.push_back(ring);
  const RoadCost cost = road_cost(doubling.road, cluster, 4);
  EXPECT_NEAR(occupied(cost.both, 4_B), 3 * 2 * kOverhead, 0.02 * 6 * kOverhead);
  // Streaming hides latencies, not bytes: two sent and two summed, by the links' rate.
  const double bytes = 2 * (kBeta + kGamma) * 4e6, above_ring = 1.7e-9 / (1.5 * kBeta + 0.75 * kGamma);
  EXPECT_GE(occupied(cost.both), 2.5e-9 * 4e6);
  EXPECT_NEAR(occupied(cost.both), above_ring * bytes, 0.01 * bytes);
  EXPECT_NEAR(alone(cost.both), 1e-3 + 2.5e-9 * 4e6, 1e-12);

  // Messages alone that leave links idle say nothing of how many of them pass together.
  cluster.operations.front().alone = fit_of(Curve{Seconds{1e-3}, SecondsPerByte{4e-9}}, 1_KiB, 1_MiB);
  EXPECT_EQ(occupied(road_cost(doubling.road, cluster, 4).both), occupied(cost.both));
}

// Small messages alone were measured, with noise: 1 ns/B where a ring's bytes need 1.5 ns/B of the link.
TEST(RoadCost, NoMeasuredRoadIsFasterThanItsLinks) {
  Cluster cluster = cluster_of(4);
  OperationFit fit;
  fit.road = a2a(Collective::kRing);
  fit.operation = Operation::kAllReduce;
  fit.workers = 4;
  fit.alone = fit_of(Curve{Seconds{1e-3}, SecondsPerByte{1e-9}}, 1_KiB, 512_KiB);
  fit.streamed = fit_of(Curve{Seconds{1e-4}, SecondsPerByte{0.5e-9}}, 1_KiB, 32_KiB);
  cluster.operations.push_back(fit);
  const RoadCost cost = road_cost(fit.road, cluster, 4);
  const double measured = 512 * 1024;  // what is beyond passes as the links let it
  EXPECT_NEAR(alone(cost.both), 1e-3 + 1e-9 * measured + 1.5e-9 * (4e6 - measured), 1e-12);
  EXPECT_NEAR(occupied(cost.both), 1.5e-9 * 4e6, 1e-12);
  EXPECT_NEAR(occupied(cost.both, 1_KiB), 1e-4 + 0.5e-9 * 1024, 1e-12);

  // The stages were measured to smaller sizes, which says nothing of whether the whole passed faster.
  OperationFit stage = fit;
  stage.operation = Operation::kReduceScatter;
  stage.alone = fit_of(Curve{Seconds{0.2e-3}, SecondsPerByte{0.7e-9}}, 1_KiB, 2_KiB);
  cluster.operations.front().alone =
      fit_of(Curve{{{0_B, Seconds{0}, SecondsPerByte{0.1e-9}}, {2_MiB, Seconds{0}, SecondsPerByte{1.6e-9}}}},
             1_KiB, 4_MiB);
  cluster.operations.push_back(stage);
  EXPECT_NEAR(alone(road_cost(fit.road, cluster, 4).both, 1_MiB), 1.5e-9 * 1048576, 1e-12);
  cluster.operations = {fit};

  // 64 MiB were seen to pass at that rate: then several links carry what one was measured to carry.
  cluster.operations.front().alone.largest = 64_MiB;
  EXPECT_NEAR(alone(road_cost(fit.road, cluster, 4).both), 1e-3 + 1e-9 * 4e6, 1e-12);
}

// One of six hosts passes bytes at a third of the others' rate. By the formula each round of halving and
// doubling waits for it; it sends its own part of each, and messages that are streamed fill the others' time.
TEST(RoadCost, WhatStreamsWereSeenToPassPassesThoughAHostIsSlow) {
  Cluster cluster = cluster_of(6);
  cluster.hosts[3].slowdown.time_per_byte = 3;
  const double wire = wire_of(a2a(Collective::kHalvingDoubling), cluster, 6).both.occupancy(4_MiB).count() /
                      static_cast<double>((4_MiB).count);
  OperationFit fit{a2a(Collective::kHalvingDoubling), Operation::kAllReduce, 6, {}, {}};
  fit.alone = fit_of(Curve{Seconds{1e-3}, SecondsPerByte{wire}}, 1_KiB, 512_KiB);
  fit.streamed = fit_of(Curve{Seconds{1e-6}, SecondsPerByte{0.6 * wire}}, 1_KiB, 64_KiB);
  cluster.operations.push_back(fit);
  EXPECT_NEAR(occupied(road_cost(fit.road, cluster, 6).both), 1e-6 + 0.6 * wire * 4e6, 0.05 * wire * 4e6);
  // By less than samples scatter it is not believed.
  cluster.operations.front().streamed =
      fit_of(Curve{Seconds{1e-6}, SecondsPerByte{0.95 * wire}}, 1_KiB, 64_KiB);
  EXPECT_NEAR(occupied(road_cost(fit.road, cluster, 6).both), wire * 4e6, 1e-9);
}

TEST(RoadCost, NorThanLinksWhoseStreamsHideTheirStartUpBehindBytes) {
  Cluster cluster = cluster_of(4);
  cluster.links[LinkClass::kInterHost].streamed.curve =
      upper(Curve{Seconds{kOverhead}, SecondsPerByte{0}}, Curve{Seconds{0}, SecondsPerByte{kBeta}});
  OperationFit fit{a2a(Collective::kRing), Operation::kAllReduce, 4, {}, {}};
  fit.alone = fit_of(Curve{Seconds{1e-3}, SecondsPerByte{1e-9}}, 1_KiB, 512_KiB);
  cluster.operations.push_back(fit);
  const double measured = 512 * 1024;
  EXPECT_NEAR(alone(road_cost(fit.road, cluster, 4).both), 1e-3 + 1e-9 * measured + 1.5e-9 * (4e6 - measured),
              1e-12);
}

TEST(RoadCost, MeasuredStagesAddUpToTheWhole) {
  Cluster cluster = cluster_of(4);
  for (const Operation operation : {Operation::kReduceScatter, Operation::kAllGather}) {
    OperationFit fit;
    fit.road = a2a(Collective::kRing);
    fit.operation = operation;
    fit.workers = 4;
    fit.alone =
        fit_of(Curve{Seconds{1e-3}, SecondsPerByte{operation == Operation::kAllGather ? 1e-9 : 2e-9}});
    cluster.operations.push_back(fit);
  }
  const RoadCost cost = road_cost(a2a(Collective::kRing), cluster, 4);
  EXPECT_EQ(cost.basis, Basis::kMeasured);
  EXPECT_NEAR(alone(cost.both), 2e-3 + 12e-3, 1e-12);
}

TEST(RoadCost, AMeasurementElsewhereCalibratesTheFormula) {
  // At 4 workers the ring took twice the formula's latency (60 us) and three times its time per byte (1.6875
  // ns).
  Cluster cluster = cluster_of(8);
  OperationFit fit;
  fit.road = a2a(Collective::kRing);
  fit.operation = Operation::kAllReduce;
  fit.workers = 4;
  fit.alone = fit_of(Curve{Seconds{120e-6}, SecondsPerByte{3 * (1.5e-9 + 0.75 * kGamma)}});
  cluster.operations.push_back(fit);
  const RoadCost cost = road_cost(a2a(Collective::kRing), cluster, 8);
  EXPECT_EQ(cost.basis, Basis::kFormula);
  EXPECT_NEAR(alone(cost.both), 2 * (13 * 2e-6 + 10e-6) + 3 * (1.75e-9 + 0.875 * kGamma) * 4e6, 1e-9);
  EXPECT_THAT(cost.explanation, testing::HasSubstr("calibrated at 4 workers"));
}

TEST(RoadCost, WhatRoadsInsideAHostTakeCalibratesNoneBetweenHosts) {
  const Cluster links = cluster_of(2, 4);
  Cluster cluster = links;
  OperationFit fit{a2a(Collective::kRing), Operation::kAllReduce, 4, {}, {}};
  const RoadCost inside = road_cost(fit.road, links, 4);
  fit.alone = fit_of(times(inside.both.alone, 3));
  fit.streamed = fit_of(times(inside.both.occupancy, 3));
  cluster.operations.push_back(fit);
  EXPECT_NEAR(alone(road_cost(fit.road, cluster, 8).both), alone(road_cost(fit.road, links, 8).both), 1e-9);
  EXPECT_NEAR(alone(road_cost(fit.road, cluster, 3).both), 3 * alone(road_cost(fit.road, links, 3).both),
              0.1 * alone(inside.both));
}

// Streamed, the ring took five times the formula's overhead (6 transfers of 2 us) and 1.01 times its time per
// byte: what the executor does for each transfer, for servers (4 transfers) as for the ring.
TEST(RoadCost, AStreamMeasuredElsewhereCalibratesTheStream) {
  Cluster cluster = cluster_of(4);
  const Road servers = ps(2, Placement::kColocated), library = a2a(Collective::kLibrary);
  const RoadCost before = road_cost(servers, cluster, 4);
  EXPECT_NEAR(occupied(before.both, 4_B), 8e-6, 1e-7);
  OperationFit fit;
  fit.road = a2a(Collective::kRing);
  fit.operation = Operation::kAllReduce;
  fit.workers = 4;
  fit.alone = fit_of(Curve{Seconds{120e-6}, SecondsPerByte{6e-9}});
  fit.streamed = fit_of(Curve{Seconds{60e-6}, SecondsPerByte{1.01 * (1.5e-9 + 0.75 * kGamma)}});
  cluster.operations.push_back(fit);
  const RoadCost cost = road_cost(servers, cluster, 4);
  EXPECT_NEAR(occupied(cost.both), 40e-6 + 1.01 * (occupied(before.both) - 8e-6), 1e-9);
  EXPECT_EQ(alone(cost.both, 4_B), occupied(cost.both, 4_B)) << "a stream costs no more than its messages";
  EXPECT_EQ(alone(cost.both), alone(before.both)) << "no message of servers was measured";
  EXPECT_THAT(cost.explanation, testing::HasSubstr("streams as all-to-all ring"));

  // Servers that were streamed know better, and what the library sends nobody else does.
  fit.road = ps(4, Placement::kColocated);
  fit.operation = Operation::kPushPull;
  cluster.operations.push_back(fit);
  EXPECT_THAT(road_cost(servers, cluster, 4).explanation,
              testing::HasSubstr("streams as 4 colocated servers"));
  fit.road = library;
  fit.operation = Operation::kAllReduce;
  fit.workers = 2;
  fit.streamed = {};
  cluster.operations.push_back(fit);
  EXPECT_THAT(road_cost(library, cluster, 4).explanation, testing::Not(testing::HasSubstr("streams as")));
}

// Three servers hid all but the bytes of short messages, which their formula does not count on. Two servers'
// bytes take what they take.
TEST(RoadCost, ACalibratedRoadIsNoFasterThanItsLinks) {
  Cluster cluster = with_slow_host(cluster_of(4), 3, {1, 3, 1});
  const Road three = ps(3, Placement::kColocated), two = ps(2, Placement::kColocated);
  const double pushed = 3 * kBeta * static_cast<double>(kMessage.count);  // by the slow host
  const Curve formula = road_cost(three, cluster, 4).both.alone;
  OperationFit fit;
  fit.road = three;
  fit.operation = Operation::kPushPull;
  fit.workers = 4;
  fit.alone = fit_of(Curve{formula.least_alpha(), formula.least_beta()}, 4_B, 128_KiB);
  cluster.operations.push_back(fit);
  const RoadCost cost = road_cost(two, cluster, 4);
  EXPECT_EQ(cost.basis, Basis::kFormula);
  EXPECT_GE(occupied(cost.both), pushed);
  EXPECT_GE(alone(cost.both), pushed);

  // Three servers were seen to pass 64 MiB faster than these links: then several carry what one was measured
  // to.
  cluster.operations.front().alone =
      fit_of(Curve{formula.least_alpha(), SecondsPerByte{0.3 * formula.least_beta().value}});
  EXPECT_LT(occupied(road_cost(two, cluster, 4).both), pushed);
}

TEST(RoadCost, LibraryAlgorithmNeedsAMeasurement) {
  try {
    road_cost(a2a(Collective::kLibrary), cluster_of(4), 4);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
  }
}

TEST(RoadCost, RefusesRoadsThatDoNotFit) {
  for (const Road& road : {ps(5, Placement::kColocated), ps(0, Placement::kDedicated)}) {
    try {
      road_cost(road, cluster_of(4), 4);
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kBadInput);
      EXPECT_THAT(error.what(), testing::HasSubstr("servers = "));
    }
  }
  EXPECT_THROW(road_cost(a2a(Collective::kRing), Cluster{}, 4), Error);
}

TEST(RoadCost, ALocalSumSendsEveryByteOfAHostOnce) {
  // 2 hosts of 4 workers and 2 servers on the third. Inside a host: 3 steps of m/4 at a tenth of the cost,
  // 3/4 m summed in the first stage. Between: the servers' card takes m from either host (8 transfers of
  // which 7 add an overhead); without the local sum it takes 8 m.
  const RoadCost cost = road_cost(ps_behind_sum(2, Placement::kDedicated), cluster_of(3, 4), 8);
  const double inside = 3 * (1e-6 + 0.1e-3), between = 10e-6 + 7 * 2e-6 + 8e-3;
  EXPECT_NEAR(alone(cost.reduce), inside + 3e6 * kGamma + between, 1e-12);
  EXPECT_NEAR(alone(cost.distribute), inside + between, 1e-12);
  EXPECT_NEAR(occupied(cost.distribute), 3 * (0.2e-6 + 0.1e-3) + 8 * 2e-6 + 8e-3, 1e-12);
  EXPECT_FALSE(cost.shared_channel);
  EXPECT_TRUE(cost.server_binds);
  const RoadCost without = road_cost(ps(2, Placement::kDedicated), cluster_of(3, 4), 8);
  EXPECT_NEAR(alone(without.distribute), 10e-6 + 7 * 2e-6 + 32e-3, 1e-12);
}

TEST(RoadCost, ALocalSumBehindColocatedServers) {
  // A server in each of 8 workers: a host's card sends half of its own sum to the other host's servers and
  // half of the other's sum back: m/2 in either stage. 7 transfers, of which 6 add an overhead.
  const RoadCost cost = road_cost(ps_behind_sum(8, Placement::kColocated), cluster_of(2, 4), 8);
  EXPECT_NEAR(alone(cost.distribute), 3 * (1e-6 + 0.1e-3) + 10e-6 + 6 * 2e-6 + 2e-3, 1e-12);
  EXPECT_TRUE(cost.shared_channel);
}

TEST(RoadCost, ALocalSumOnHostsOfOneWorkerIsNone) {
  for (const Placement placement : {Placement::kColocated, Placement::kDedicated}) {
    const RoadCost sum = road_cost(ps_behind_sum(2, placement), cluster_of(6), 4),
                   none = road_cost(ps(2, placement), cluster_of(6), 4);
    EXPECT_EQ(alone(sum.both), alone(none.both));
    EXPECT_EQ(occupied(sum.reduce), occupied(none.reduce));
  }
}

TEST(RoadCost, ALocalSumIsCutForTheSmallestHost) {
  // 3 workers on 2 hosts of 2 slots: the second has one, so the first sums everything in one worker: a whole
  // message inside, and two pushes to one server.
  const RoadCost cost = road_cost(ps_behind_sum(1, Placement::kDedicated), cluster_of(3, 2), 3);
  EXPECT_NEAR(alone(cost.distribute), (1e-6 + 0.4e-3) + 10e-6 + 2e-6 + 8e-3, 1e-12);
}

TEST(RoadCost, ALocalSumIsCalibratedByOnesOfItsKind) {
  // Servers without one were three times as slow as their formula; that says nothing about these.
  Cluster cluster = cluster_of(3, 4);
  const RoadCost before = road_cost(ps_behind_sum(2, Placement::kDedicated), cluster, 8);
  OperationFit fit;
  fit.road = ps(2, Placement::kDedicated);
  fit.operation = Operation::kPushPull;
  fit.workers = 4;
  fit.alone = fit_of(Curve{Seconds{1e-3}, SecondsPerByte{1e-7}});
  cluster.operations.push_back(fit);
  EXPECT_EQ(alone(road_cost(ps_behind_sum(2, Placement::kDedicated), cluster, 8).both), alone(before.both));
  cluster.operations.back().road = ps_behind_sum(2, Placement::kDedicated);
  EXPECT_GT(alone(road_cost(ps_behind_sum(2, Placement::kDedicated), cluster, 8).both), alone(before.both));
}

TEST(RoadCost, MoreBytesAreNeverFasterOnAnyRoad) {
  Cluster cluster = cluster_of(3, 2);
  cluster.links[LinkClass::kInterHost].alone.curve = Curve{
      {{0_B, Seconds{1e-5}, {3e-9}}, {64_KiB, Seconds{1.5e-4}, {1e-9}}, {1_MiB, Seconds{2.1e-4}, {0.95e-9}}}};
  for (const int workers : {2, 3, 5, 6}) {
    for (const Road& road :
         {a2a(Collective::kRing), a2a(Collective::kHalvingDoubling), a2a(Collective::kRecursiveDoubling),
          a2a(Collective::kOneShot), a2a(Collective::kDoubleBinaryTree), a2a(Collective::kHierarchical),
          ps(1, Placement::kColocated), ps(2, Placement::kColocated), ps(2, Placement::kDedicated),
          ps(2, Placement::kDedicated, Assignment::kHashed), ps_behind_sum(2, Placement::kColocated),
          ps_behind_sum(2, Placement::kDedicated)}) {
      const RoadCost cost = road_cost(road, cluster, workers);
      for (const StageCost* stage : {&cost.both, &cost.reduce, &cost.distribute}) {
        double before = 0;
        for (std::uint64_t m = 1; m < (std::uint64_t{1} << 28); m = m * 5 / 4 + 1) {
          ASSERT_GE(alone(*stage, Bytes{m}), before * (1 - 1e-9)) << describe(road) << " at " << m;
          before = alone(*stage, Bytes{m});
        }
      }
    }
  }
}

/// What a road's cost rests on, in words.
std::vector<std::string> behind(const Road& road, const Cluster& cluster, int workers) {
  std::vector<std::string> names;
  for (const FitSource& source : fits_behind(road, cluster, workers)) names.push_back(describe(source));
  return names;
}

TEST(FitsBehind, AreTheRoadsOwnWhereItWasMeasured) {
  Cluster cluster = cluster_of(8);
  OperationFit ring{AllReduce{}, Operation::kAllReduce, 4, {}, {}};
  ring.alone.curve = ring.streamed.curve = Curve{Seconds{1e-4}, SecondsPerByte{1e-9}};
  ring.alone.largest = ring.streamed.largest = 64_MiB;
  cluster.operations.push_back(ring);
  EXPECT_EQ(behind(AllReduce{}, cluster, 4),
            (std::vector<std::string>{"all-reduce, " + describe(AllReduce{}) + ", 4 workers, alone",
                                      "all-reduce, " + describe(AllReduce{}) + ", 4 workers, streamed"}));
  EXPECT_TRUE(behind(AllReduce{}, cluster, 1).empty());
}

TEST(FitsBehind, AreThoseThatCalibrateTheFormulaAndTheLinksElsewhere) {
  Cluster cluster = cluster_of(8);
  OperationFit ring{AllReduce{}, Operation::kAllReduce, 4, {}, {}};
  ring.alone.curve = Curve{Seconds{1e-4}, SecondsPerByte{1e-9}};
  ring.alone.largest = 64_MiB;
  cluster.operations.push_back(ring);
  const std::vector<std::string> names = behind(AllReduce{}, cluster, 8);
  EXPECT_EQ(names.front(), "all-reduce, " + describe(AllReduce{}) + ", 4 workers, alone");
  EXPECT_NE(std::ranges::find(names, "link inter-host, alone"), names.end());
}

}  // namespace
}  // namespace commtune
