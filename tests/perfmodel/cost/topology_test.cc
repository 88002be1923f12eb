#include "perfmodel/cost/topology.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace commtune {
namespace {

/// Alike hosts with a link between them.
Cluster cluster_of(int hosts, int slots = 1) {
  Cluster cluster;
  for (int i = 0; i < hosts; ++i) cluster.hosts.push_back({"h" + std::to_string(i), slots});
  cluster.links[LinkClass::kInterHost] = {};
  return cluster;
}

Cluster with_slow_host(Cluster cluster, std::size_t host, HostSlowdown slowdown) {
  cluster.hosts[host].slowdown = slowdown;
  return cluster;
}

TEST(Topology, SparesSlowHostsWhereverTheyAre) {
  const auto spared = [](const std::vector<std::size_t>& slow, int hosts, int slots) {
    Cluster cluster = cluster_of(hosts, slots);
    for (const std::size_t host : slow) cluster.hosts[host].slowdown = {1, 3, 1};
    const WorkerRow row = spared_workers(topology_of(cluster, hosts * slots));
    return std::pair(row.first, row.count);
  };
  EXPECT_EQ(spared({3}, 4, 1), std::pair(0, 3));
  EXPECT_EQ(spared({0}, 4, 1), std::pair(1, 3));
  EXPECT_EQ(spared({1}, 4, 1), std::pair(2, 3));  // workers 2, 3 and 0
  EXPECT_EQ(spared({1, 2}, 5, 2), std::pair(6, 6));
  EXPECT_EQ(spared({}, 4, 1), std::pair(0, 0));
  EXPECT_EQ(spared({0, 1}, 2, 1), std::pair(0, 0));
}

TEST(Topology, FillsHostsSlotBySlot) {
  const Topology place = topology_of(cluster_of(3, 4), 9);
  EXPECT_EQ(place.hosts, 3);
  EXPECT_EQ(place.per_host, 4);
  EXPECT_EQ(topology_of(cluster_of(3, 4), 32).hosts, 8);  // goes on like the first host
  EXPECT_EQ(topology_of(Cluster{}, 5).hosts, 5);
}

TEST(Topology, KnowsTheSlowestAndTheSpareHosts) {
  const Cluster cluster = with_slow_host(with_slow_host(cluster_of(4, 2), 1, {2, 3, 1.5}), 3, {9, 9, 9});
  const Topology place = topology_of(cluster, 5);
  EXPECT_EQ(place.slowest, (HostSlowdown{2, 3, 1.5}));
  ASSERT_EQ(place.rows.size(), 3U);  // two slots, two slots of the slow one, one
  EXPECT_EQ(place.rows[2].ranks, 1);
  EXPECT_EQ(place.fewest, 1);
  ASSERT_EQ(place.spare.size(), 1U);
  EXPECT_EQ(place.spare[0].slowdown.compute, 9);
  EXPECT_EQ(topology_of(cluster_of(3, 4), 2048).rows.size(), 1U);  // alike neighbours are one row
}

TEST(SlowdownOf, IsThatOfTheHostsInUse) {
  Cluster cluster = with_slow_host(cluster_of(4), 2, {1, 1, 1.5});
  cluster.contention.value = 0.3;
  EXPECT_EQ(slowdown_of(cluster, 4).compute, 1.5);
  EXPECT_EQ(slowdown_of(cluster, 2).compute, 1);
  EXPECT_EQ(slowdown_of(cluster, 2).contention, 0.3);
}

TEST(Cards, HoldEveryWorkerAndServer) {
  const Topology place = topology_of(cluster_of(3, 4), 12);
  const std::vector<Card> cards = cards_of(place, {6, Placement::kColocated, Assignment::kEven});
  ASSERT_EQ(cards.size(), 3U);  // four servers, two, none
  EXPECT_EQ(cards[0].servers, 4);
  EXPECT_EQ(cards[1].servers, 2);
  EXPECT_EQ(cards[2].servers, 0);
  for (const Card& card : cards) EXPECT_EQ(card.workers, 4);
}

/// Workers and servers of each card; of alike neighbours, which are as good as one, of one.
std::vector<std::pair<double, double>> loads(const Topology& place, const ParameterServer& road) {
  std::vector<std::pair<double, double>> result;
  for (const Card& card : cards_of(place, road)) result.emplace_back(card.workers, card.servers);
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}
using Loads = std::vector<std::pair<double, double>>;

TEST(Cards, OfServersThatBeginAtALaterWorkerGoRoundToTheFirst) {
  // Four hosts of one worker; servers beside workers 3, 0 and 1.
  ParameterServer road{3, Placement::kColocated, Assignment::kEven};
  road.first = 3;
  EXPECT_EQ(loads(topology_of(cluster_of(4), 4), road), (Loads{{1, 1}, {1, 0}, {1, 1}}));
}

TEST(Cards, OfDedicatedServersAreTheSpareHostsSlotBySlot) {
  // Two hosts of two slots work, the third serves: two there, and a further host with a server each.
  const Topology place = topology_of(cluster_of(3, 2), 4);
  const auto road = [](int servers) {
    return ParameterServer{servers, Placement::kDedicated, Assignment::kEven};
  };
  EXPECT_EQ(loads(place, road(1)), (Loads{{2, 0}, {0, 1}}));
  EXPECT_EQ(loads(place, road(2)), (Loads{{2, 0}, {0, 2}}));
  EXPECT_EQ(loads(place, road(3)), (Loads{{2, 0}, {0, 2}, {0, 1}}));
}

TEST(Cards, InsideOneHostEveryRankHasItsOwn) {
  const Topology place = topology_of(cluster_of(1, 3), 3);
  EXPECT_EQ(loads(place, {1, Placement::kColocated, Assignment::kEven}), (Loads{{1, 1}, {1, 0}}));
}

TEST(InsideOneHost, IsNoJobWhoseServersAreOnAnother) {
  const Road ring = AllReduce{};
  const Road dedicated = ParameterServer{1, Placement::kDedicated, Assignment::kEven};
  EXPECT_TRUE(inside_one_host(topology_of(cluster_of(1, 4), 4), ring));
  EXPECT_TRUE(inside_one_host(topology_of(cluster_of(1, 4), 4), dedicated));
  EXPECT_TRUE(inside_one_host(topology_of(cluster_of(2, 4), 4), ring));
  EXPECT_FALSE(inside_one_host(topology_of(cluster_of(2, 4), 4), dedicated));
  EXPECT_FALSE(inside_one_host(topology_of(cluster_of(2, 4), 5), ring));
}

TEST(FirstServer, IsTheSparedRowsWhereAllOfThemFit) {
  EXPECT_EQ(first_server({2, 3}, 3), 2);
  EXPECT_EQ(first_server({2, 3}, 4), 0);
  EXPECT_EQ(first_server({}, 1), 0);
}

TEST(Topology, OneHostWithoutALinkToAnotherGrows) {
  Cluster alone = cluster_of(1, 4);
  alone.links.erase(LinkClass::kInterHost);
  EXPECT_EQ(topology_of(alone, 16).hosts, 1);
  EXPECT_EQ(topology_of(alone, 16).per_host, 16);
}

TEST(ExpectedMaximum, FollowsTheOrderStatisticsOfTheNormal) {
  // E[max] of 2, 10 and 100 standard normals: 0.5642, 1.5388, 2.5076 (Harter 1961); Blom's is within 5 %.
  EXPECT_EQ(expected_maximum(1), 0);
  EXPECT_NEAR(expected_maximum(2), 0.5642, 0.03);
  EXPECT_NEAR(expected_maximum(10), 1.5388, 0.01);
  EXPECT_NEAR(expected_maximum(100), 2.5076, 0.01);
}

TEST(ExpectedMaximum, HasALowerLimit) {
  // Of 2, 3, 4, 10, 32 and 1024 normals (Harter 1961).
  const std::pair<int, double> exact[] = {{2, 0.56419},  {3, 0.84628},  {4, 1.02938},
                                          {10, 1.53875}, {32, 2.06967}, {1024, 3.24824}};
  for (const auto& [n, mean] : exact) {
    EXPECT_LE(least_expected_maximum(n), mean) << n;
    EXPECT_GE(least_expected_maximum(n), 0.984 * mean) << n;
  }
  EXPECT_EQ(least_expected_maximum(1), 0);
}

TEST(Slowdown, OnlyWorkersOfTheSlowestHostsAreSurelyLate) {
  Cluster cluster = cluster_of(4, 2);
  cluster.jitter_seconds.value = 1;
  EXPECT_EQ(slowdown_of(cluster, 8).lateness.count(), least_expected_maximum(8));
  cluster.hosts[1].slowdown.compute = cluster.hosts[2].slowdown.compute = 1.5;
  EXPECT_EQ(slowdown_of(cluster, 8).lateness.count(), least_expected_maximum(4));
  EXPECT_EQ(slowdown_of(cluster, 2).lateness.count(), least_expected_maximum(2));
  cluster.hosts[1].slowdown.compute = 1.6;
  EXPECT_EQ(slowdown_of(cluster, 3).lateness.count(), 0) << "one worker there has nobody to be behind";
}

/// One host's card takes so many times the others' time.
Cluster with_slow_host(int hosts, int slots, int slow, double factor) {
  Cluster cluster = cluster_of(hosts, slots);
  cluster.hosts[static_cast<std::size_t>(slow)].slowdown.time_per_byte = factor;
  return cluster;
}

const RingLink kInside{Seconds{1e-4}, SecondsPerByte{1e-9}}, kBetween{Seconds{1e-3}, SecondsPerByte{1e-8}};

TEST(RingSkew, IsHowFarTheLongestCycleIsBelowAllStepsOnTheSlowestLink) {
  // Seven links, of which the slow host has two; the other five take a quarter: 5 (1 - 1/4) / 2 of 12 steps.
  const RingSkew skew = ring_skew(topology_of(with_slow_host(7, 1, 3, 4), 7), kInside, kBetween);
  EXPECT_DOUBLE_EQ(skew.share, 5 * 0.75 / 2 / 12);
  EXPECT_DOUBLE_EQ(skew.latency.count(), 7e-3 / 2);
  // The last host's second link is the one to the first.
  EXPECT_DOUBLE_EQ(ring_skew(topology_of(with_slow_host(7, 1, 6, 4), 7), kInside, kBetween).share,
                   skew.share);
  // Two hosts of three ranks: two links between them, four inside that take a tenth.
  const RingSkew shared = ring_skew(topology_of(with_slow_host(2, 3, 0, 1), 6), kInside, kBetween);
  EXPECT_DOUBLE_EQ(shared.share, 4 * 0.9 / 2 / 10);
  EXPECT_DOUBLE_EQ(shared.latency.count(), 2.4e-3 / 2);
}

TEST(RingSkew, IsNoneWhereLinksAreAlike) {
  EXPECT_EQ(ring_skew(topology_of(with_slow_host(4, 1, 0, 1), 4), kInside, kBetween).share, 0);
  EXPECT_EQ(ring_skew(topology_of(with_slow_host(2, 1, 0, 4), 2), kInside, kBetween).share, 0);
  EXPECT_EQ(ring_skew(topology_of(with_slow_host(1, 4, 0, 1), 4), kInside, kBetween).share, 0);
  EXPECT_EQ(ring_skew(topology_of(with_slow_host(4, 1, 0, 4), 4), {}, {}).share, 0);
}

}  // namespace
}  // namespace commtune
