#include "perfmodel/cost/road_factor.h"

#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>

#include "perfmodel/cost/stage_cost.h"

namespace commtune {
namespace {

const Road kRing = AllReduce{};
const Road kServers = ParameterServer{4};

Fit fit_of(double alpha, double beta, double deviation) {
  Fit fit;
  fit.curve = Curve{Seconds{alpha}, SecondsPerByte{beta}};
  fit.quality = {8, 0.99, 0.01, 0.02};
  fit.smallest = 4_B;
  fit.largest = 256_MiB;
  fit.covariance = {1e-10, 1e-19, 1e-19, 1e-22};
  fit.deviation = {deviation, deviation};
  return fit;
}

/// Four hosts whose ring was measured; servers are priced by formula.
Cluster made_cluster() {
  Cluster cluster;
  cluster.name = "made";
  for (int i = 0; i < 4; ++i) cluster.hosts.push_back({"h" + std::to_string(i), 1});
  LinkFit link;
  link.alone = fit_of(100e-6, 1e-9, 0);
  link.streamed = fit_of(10e-6, 1e-9, 0);
  cluster.links[LinkClass::kInterHost] = link;
  cluster.reduce_seconds_per_byte.value = 0.1e-9;
  cluster.operations = {
      {kRing, Operation::kAllReduce, 4, fit_of(1e-3, 2.2e-9, 0.1), fit_of(1e-4, 2e-9, 0.1)}};
  cluster.formula_deviation = {0.2, 0.3};
  return cluster;
}

/// Messages alone and streams are off by the same.
RoadFactor alike(const Road& road, const CostFactor& factor) { return {road, factor, factor}; }

void expect_times(const RoadCost& cost, const RoadCost& before, double factor, double tolerance) {
  const std::array stages{std::pair(&cost.both, &before.both), std::pair(&cost.reduce, &before.reduce),
                          std::pair(&cost.distribute, &before.distribute)};
  for (const auto& [now, then] : stages) {
    for (const Bytes m : {4_KiB, 1_MiB, 64_MiB}) {
      EXPECT_NEAR(now->alone(m) / then->alone(m), factor, tolerance) << m.count;
      EXPECT_NEAR(now->occupancy(m) / then->occupancy(m), factor, tolerance) << m.count;
    }
  }
}

TEST(Refitted, AMeasuredRoadCostsItsFactorMore) {
  const Cluster before = made_cluster();
  const std::array factors{alike(kRing, {1.4, 1.4, {0.02, 0.02}})};
  const Cluster after = refitted(before, factors, 4);
  expect_times(road_cost(kRing, after, 4), road_cost(kRing, before, 4), 1.4, 1e-9);
  ASSERT_EQ(after.operations.size(), 1U);
  const Fit& fit = after.operations.front().alone;
  EXPECT_NEAR(fit.covariance[0], 1.96e-10, 1e-16);
  EXPECT_NEAR(fit.covariance[3], 1.96e-22, 1e-28);
  EXPECT_EQ(fit.deviation, (Deviation{0.02, 0.02}));
  EXPECT_EQ(fit.quality.samples, 8);
}

TEST(Refitted, StartUpsAndTimesPerByteHaveFactorsOfTheirOwn) {
  const Cluster before = made_cluster();
  const std::array factors{alike(kRing, {2, 1.5, {0.3, 0.2, true}})};
  const Cluster after = refitted(before, factors, 4);
  const Fit &then = before.operations.front().alone, &now = after.operations.front().alone;
  EXPECT_NEAR(now.curve.pieces().front().alpha.count(), 2e-3, 1e-9);
  EXPECT_NEAR(now.curve.pieces().front().beta.value, 3.3e-9, 1e-15);
  EXPECT_NEAR(now.covariance[0], 4 * then.covariance[0], 1e-16);
  EXPECT_NEAR(now.covariance[1], 3 * then.covariance[1], 1e-25);
  EXPECT_NEAR(now.covariance[3], 2.25 * then.covariance[3], 1e-28);
  EXPECT_EQ(now.deviation, (Deviation{0.3, 0.2, true}));
  const Deviation left{0.3, 0.2, true};
  EXPECT_EQ(road_cost(kRing, after, 4).deviation, (CostDeviation{left, left}));
  const Cluster read = cluster_from_json(to_json(after));
  EXPECT_EQ(read.operations.front().alone.deviation, now.deviation);
}

TEST(Refitted, MessagesAloneAndStreamsHaveFactorsOfTheirOwn) {
  const Cluster before = made_cluster();
  const std::array factors{RoadFactor{kRing, {1.1, 1.1, {0.01, 0.01}}, {0.8, 0.8, {0.2, 0.2}}}};
  const Cluster after = refitted(before, factors, 4);
  const RoadCost then = road_cost(kRing, before, 4), now = road_cost(kRing, after, 4);
  EXPECT_NEAR(now.both.alone(1_MiB) / then.both.alone(1_MiB), 1.1, 1e-9);
  EXPECT_NEAR(now.both.occupancy(1_MiB) / then.both.occupancy(1_MiB), 0.8, 1e-9);
  EXPECT_EQ(now.deviation, (CostDeviation{{0.01, 0.01}, {0.2, 0.2}}));
}

TEST(Refitted, ARoadPricedByFormulaGetsFitsOfItsOwn) {
  const Cluster before = made_cluster();
  const std::array factors{alike(kServers, {1.3, 1.3, {0.05, 0.05}})};
  const Cluster after = refitted(before, factors, 4);
  const RoadCost then = road_cost(kServers, before, 4), now = road_cost(kServers, after, 4);
  EXPECT_EQ(then.basis, Basis::kFormula);
  EXPECT_EQ(now.basis, Basis::kMeasured);
  expect_times(now, then, 1.3, 0.01);
  EXPECT_EQ(now.server_binds, then.server_binds);
  EXPECT_EQ(now.deviation, (CostDeviation{{0.05, 0.05}, {0.05, 0.05}}));
  // Other roads cost what they did, and can be stored.
  expect_times(road_cost(kRing, after, 4), road_cost(kRing, before, 4), 1, 1e-9);
  EXPECT_NO_THROW(cluster_from_json(to_json(after)));
}

TEST(Refitted, ARoadWithoutStreamsKeepsWhatIsCarriedToIt) {
  Cluster before = made_cluster();
  before.operations.push_back({kServers, Operation::kPushPull, 4, fit_of(2e-3, 2.5e-9, 0.1), {}});
  const std::array factors{alike(kServers, {1.5, 1.5, {0.05, 0.05}})};
  const Cluster after = refitted(before, factors, 4);
  expect_times(road_cost(kServers, after, 4), road_cost(kServers, before, 4), 1.5, 0.01);
}

TEST(Refitted, EveryRoadIsMultipliedByItsOwnFactorWhateverTheOrder) {
  const Cluster before = made_cluster();
  const RoadFactor ring = alike(kRing, {1.4, 1.4, {0.02, 0.02}}),
                   servers = alike(kServers, {0.9, 0.9, {0.02, 0.02}});
  const Cluster one = refitted(before, std::array{ring, servers}, 4);
  const Cluster other = refitted(before, std::array{servers, ring}, 4);
  for (const Cluster& after : {one, other}) {
    expect_times(road_cost(kRing, after, 4), road_cost(kRing, before, 4), 1.4, 0.01);
    expect_times(road_cost(kServers, after, 4), road_cost(kServers, before, 4), 0.9, 0.01);
  }
}

}  // namespace
}  // namespace commtune
