// A cluster that was probed over several transports: every method over each of them, in one ranking.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "api/view/answer_json.h"
#include "perfmodel/base/error.h"
#include "perfmodel/cost/stage_cost.h"
#include "perfmodel/shipped_profiles.h"
#include "tests/tuner/testbed.h"
#include "tuner/check.h"
#include "tuner/doubt.h"
#include "tuner/explain.h"
#include "tuner/whatif.h"

namespace commtune::tuner {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

Cluster over(const std::string& transport, double alpha, double beta, double doubt = 0) {
  Cluster cluster = made_cluster(4, alpha, beta);
  cluster.transport = transport;
  for (Fit* fit : {&cluster.links.begin()->second.alone, &cluster.links.begin()->second.streamed}) {
    const CurvePiece piece = fit->curve.pieces().front();
    const double a = doubt * piece.alpha.count(), b = doubt * piece.beta.value;
    if (doubt > 0) fit->covariance = {a * a, 0, 0, b * b};
  }
  return cluster;
}

Cluster both(Cluster own, Cluster other) {
  own.others.push_back(std::move(other));
  return own;
}

const Profile kModel = *shipped_profile("resnet50");

Entry entry_named(const Answer& answer, const std::string& method) {
  const auto found = std::ranges::find(answer.ranking, method, &Entry::method);
  return found == answer.ranking.end() ? Entry{} : *found;
}

// What each is predicted to take alone, it is predicted to take beside the other.
TEST(Transports, AreRankedTogetherAsEachIsAlone) {
  const Cluster slow = over("tcp", 200e-6, 8e-9), fast = over("verbs", 20e-6, 1e-9);
  const Answer answer = tune(kModel, both(slow, fast));
  for (const Cluster& alone : {slow, fast}) {
    const Answer own = tune(kModel, alone);
    for (const Entry& entry : own.ranking) {
      const Entry found = entry_named(answer, method_over(entry.method, alone.transport));
      EXPECT_EQ(found.prediction.iteration, entry.prediction.iteration) << entry.method;
      EXPECT_EQ(found.title, entry.title + " over " + alone.transport);
      EXPECT_EQ(found.plan.transport, alone.transport);
      EXPECT_EQ(found.plan.messages, entry.plan.messages);
      EXPECT_EQ(entry.plan.transport, "");
    }
  }
  EXPECT_EQ(answer.ranking.size(), 2 * tune(kModel, slow).ranking.size());
  EXPECT_TRUE(std::ranges::is_sorted(answer.ranking, {},
                                     [](const Entry& entry) { return entry.prediction.iteration; }));
  EXPECT_EQ(answer.ranking.at(answer.chosen).plan.transport, "verbs");
  EXPECT_THAT(answer.reason, HasSubstr(" over verbs"));
  EXPECT_EQ(answer.bound, tune(kModel, fast).bound);
}

TEST(Transports, MayWinByArchitecture) {
  // Rings were measured over the one, servers over the other: each is fast where it was not slowed.
  Cluster ring = over("tcp", 1e-4, 1e-9), servers = over("verbs", 1e-4, 1e-9);
  ring.operations.push_back(all_reduce(kRing, 1e-9, 0));
  servers.operations.push_back(all_reduce(kRing, 1e-7, 0));
  const Answer answer = tune(kModel, both(ring, servers));
  EXPECT_LT(entry_named(answer, "wfbp-a2a@tcp").prediction.iteration,
            entry_named(answer, "wfbp-a2a@verbs").prediction.iteration);
  std::set<std::string> transports;
  for (const RoadBound& bound : answer.bounds) transports.insert(bound.transport);
  EXPECT_THAT(transports, UnorderedElementsAre("tcp", "verbs"));
}

TEST(Transports, OverWhichNothingCanBePricedAreLeftOut) {
  Cluster unknown = over("verbs", 1e-4, 1e-9);
  unknown.links.clear();
  const Answer answer = tune(kModel, both(over("tcp", 2e-4, 8e-9), unknown));
  for (const Entry& entry : answer.ranking) EXPECT_EQ(entry.plan.transport, "tcp");
  Cluster none = unknown;
  none.transport = "tcp";
  EXPECT_THROW(tune(kModel, both(none, unknown)), Error);
}

// Of two that are alike and in doubt independently, each is the better in about half of the draws; of its
// half some are won by each of several methods.
TEST(Transports, AreInDoubtIndependently) {
  Answer answer = tune(kModel, both(over("tcp", 2e-4, 8e-9, 0.05), over("verbs", 2e-4, 8e-9, 0.05)));
  double tcp = 0, verbs = 0;
  for (const Entry& entry : answer.ranking) {
    ASSERT_TRUE(entry.doubt) << entry.method;
    double& most = entry.plan.transport == "tcp" ? tcp : verbs;
    most = std::max(most, entry.doubt->probability_best);
  }
  EXPECT_GT(tcp, 0.2);
  EXPECT_GT(verbs, 0.2);
  EXPECT_LT(tcp + verbs, 1.01);
  EXPECT_FALSE(answer.clear_winner);
}

TEST(Transports, WithoutDoubtStandBesideThoseInDoubt) {
  const Answer answer = tune(kModel, both(over("tcp", 2e-4, 8e-9), over("verbs", 2e-4, 8e-9, 0.05)));
  double sure = 0;
  for (const Entry& entry : answer.ranking) {
    if (entry.plan.transport == "tcp") sure = std::max(sure, entry.doubt->probability_best);
  }
  EXPECT_GT(sure, 0.25);
  EXPECT_LT(sure, 0.75);
}

TEST(Transports, ArePricedWhereAPlanIsExplained) {
  const Cluster cluster = both(over("tcp", 2e-4, 8e-9), over("verbs", 2e-5, 1e-9));
  const Answer answer = tune(kModel, cluster);
  for (const Entry& entry : answer.ranking)
    EXPECT_NEAR(explain(kModel, cluster, entry.plan).prediction.iteration / entry.prediction.iteration, 1,
                1e-9);
}

TEST(Transports, AllChangeWithTheNetwork) {
  const Cluster cluster = both(over("tcp", 2e-4, 8e-9), over("verbs", 2e-5, 1e-9));
  const Cluster slower = with_network(cluster, 1, 4);
  EXPECT_EQ(slower.others[0].links.begin()->second.alone.curve.pieces()[0].beta.value, 4e-9);
  for (const Flip& flip : flip_points(kModel, cluster)) EXPECT_THAT(flip.before, HasSubstr(" over "));
  const auto curves = scale(kModel, cluster, {2, 4});
  EXPECT_EQ(curves.size(), tune(kModel, cluster).ranking.size());
}

/// Checks by runs that take what another cluster would.
CheckedAnswer checked(const Cluster& fitted, const Cluster& truth, std::vector<std::string>& order) {
  CheckOptions options;
  Seconds now{0};
  options.budget = Seconds{100};
  options.clock = [&] { return now; };
  options.measure = [&](const Entry& entry, Seconds /*share*/) {
    order.push_back(entry.plan.transport);
    now += Seconds{1};
    const Cluster& true_cluster = over_transport(truth, entry.plan.transport);
    const Seconds time =
        simulate(Workload(kModel), entry.plan, road_cost(entry.plan.road, true_cluster, entry.plan.workers))
            .iteration;
    return std::vector<Seconds>{time * 0.9999, time, time, time, time * 1.0001};
  };
  options.plan = [&](const Cluster& cluster, const Trials& trials) {
    TuneOptions again;
    again.roads = {kRing};
    again.trials = trials;
    return tune(kModel, cluster, again);
  };
  TuneOptions first;
  first.roads = {kRing};
  return check(tune(kModel, fitted, first), kModel, fitted, options);
}

Cluster with_ring(const std::string& transport, double beta) {
  Cluster cluster = over(transport, 1e-4, 1e-9);
  cluster.operations.push_back(all_reduce(kRing, beta, 0.2));
  return cluster;
}

TEST(Transports, AreCheckedByRunsOverEach) {
  // A ring over verbs is said to be the faster one, and takes twice as long as that.
  const Cluster fitted = both(with_ring("tcp", 4e-9), with_ring("verbs", 3.6e-9));
  const Cluster truth = both(with_ring("tcp", 4e-9), with_ring("verbs", 7.2e-9));
  std::vector<std::string> order;
  const CheckedAnswer result = checked(fitted, truth, order);
  ASSERT_GE(order.size(), 2U);
  EXPECT_THAT(std::vector(order.begin(), order.begin() + 2), ElementsAre("verbs", "tcp"));
  EXPECT_EQ(result.answer.ranking.at(result.answer.chosen).plan.transport, "tcp");
  const OperationFit& corrected = result.cluster.others.at(0).operations.at(0);
  EXPECT_GT(corrected.streamed.curve.pieces().back().beta.value, 5e-9);
  for (const RoadFactor& factor : result.answer.check->factors) {
    if (factor.transport != "tcp") continue;
    EXPECT_NEAR(factor.alone.rate, 1, 0.05);
    EXPECT_NEAR(factor.streamed.rate, 1, 0.05);
  }
  EXPECT_THAT(check_text(result.answer), HasSubstr("all-to-all ring over verbs costs "));
  const nlohmann::json json = api::to_json(result.answer);
  EXPECT_EQ(json.at("check").at("plans").at(0).at("transport"), "verbs");
  EXPECT_THAT(json.at("chosen").get<std::string>(), EndsWith("@tcp"));
}

TEST(Methods, KeepTheirNameOverATransport) {
  EXPECT_EQ(method_over("wfbp-ps", "mpi"), "wfbp-ps@mpi");
  EXPECT_EQ(base_method("wfbp-ps@mpi"), "wfbp-ps");
  EXPECT_EQ(find_method("wfbp-ps@mpi"), find_method("wfbp-ps"));
  EXPECT_EQ(find_method("wfbp@ps"), nullptr);
  for (const Method& method : methods()) EXPECT_EQ(base_method(method.name), method.name);
}

}  // namespace
}  // namespace commtune::tuner
