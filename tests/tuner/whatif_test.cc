#include "tuner/whatif.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "api/view/whatif_json.h"
#include "perfmodel/base/error.h"
#include "perfmodel/shipped_profiles.h"
#include "tests/tuner/testbed.h"
#include "tuner/doubt.h"
#include "tuner/explain.h"
#include "tuner/methods/ipart.h"
#include "tuner/methods/wfbp.h"

namespace commtune::tuner {
namespace {

using api::to_json;

Profile resnet() { return *shipped_profile("resnet50"); }
Cluster gigabit() { return made_cluster(4, 200e-6, 8e-9); }

TuneOptions quick() {
  TuneOptions options;
  options.draws = 0;
  return options;
}

TEST(WithNetwork, MultipliesLatencyAndTimePerByte) {
  const Cluster cluster = with_network(gigabit(), 2, 3);
  EXPECT_NEAR(cluster.links.at(LinkClass::kInterHost).alone.curve(1000_B).count(), 400e-6 + 24e-6, 1e-12);
  EXPECT_THROW(with_network(gigabit(), 0, 1), Error);
}

TEST(ReferenceLink, IsBetweenHostsAndCostsWhatALongMessageDoes) {
  EXPECT_FALSE(reference_link(Cluster{}));
  Cluster cluster;
  Fit& inside = cluster.links[LinkClass::kIntraHost].alone;
  inside.curve = Curve{Seconds{1e-6}, SecondsPerByte{1e-10}};
  EXPECT_EQ(reference_link(cluster)->latency.count(), 1e-6);
  Fit& between = cluster.links[LinkClass::kInterHost].alone;
  between.curve = Curve{Seconds{1e-3}, SecondsPerByte{0}};
  between.largest = Bytes{1000};
  EXPECT_EQ(reference_link(cluster)->latency.count(), 1e-3);
  EXPECT_DOUBLE_EQ(reference_link(cluster)->per_byte.value, 1e-6) << "1 ms for 1000 bytes";
}

TEST(Scale, StartsAtOneAndStaysBelowPerfect) {
  const auto curves = scale(resnet(), gigabit(), {1, 2, 4, 16}, quick());
  ASSERT_FALSE(curves.empty());
  for (const ScaleCurve& curve : curves) {
    ASSERT_EQ(curve.points.size(), 4U) << curve.method;
    EXPECT_NEAR(curve.points[0].speedup, 1, 1e-9);
    for (const ScalePoint& point : curve.points) EXPECT_LE(point.efficiency, 1 + 1e-9);
  }
  EXPECT_EQ(to_json(curves).size(), curves.size());
}

TEST(ServerSweep, MoreServersAreNeverSlowerOnAnIdleNetwork) {
  const auto points = server_sweep(resnet(), gigabit(), {1, 2, 4}, Placement::kColocated, quick());
  ASSERT_EQ(points.size(), 3U);
  for (std::size_t i = 1; i < points.size(); ++i) {
    EXPECT_LE(points[i].iteration, points[i - 1].iteration);
    EXPECT_NEAR(points[i].marginal_gain, 1 - points[i].iteration / points[i - 1].iteration, 1e-12);
  }
}

TEST(ServerSweep, SumsInsideHostsWhereThatIsFaster) {
  TuneOptions options = quick();
  options.workers = 8;
  const auto points =
      server_sweep(resnet(), made_cluster_of_hosts(4, 4, 200e-6, 8e-9), {1}, Placement::kDedicated, options);
  EXPECT_EQ(std::get<ParameterServer>(points[0].road).local_sum, LocalSum::kFirst);
}

TEST(ServerSweep, ComparesWithNoServersAtAll) {
  const auto points = server_sweep(resnet(), gigabit(), {0, 1}, Placement::kDedicated, quick());
  ASSERT_EQ(points.size(), 2U);
  EXPECT_TRUE(std::holds_alternative<AllReduce>(points[0].road));
  EXPECT_EQ(points[1].road, Road(ParameterServer{1, Placement::kDedicated}));
  EXPECT_EQ(to_json(points).size(), 2U);
  EXPECT_THROW(server_sweep(resnet(), gigabit(), {5}, Placement::kColocated, quick()), Error);
}

TEST(WhatIfs, TellHowFarTheyAreAndCanBeEnded) {
  std::vector<double> told;
  phase_map(resnet(), gigabit(), {2}, {1}, {1, 2}, quick(), [&](double done) { told.push_back(done); });
  EXPECT_THAT(told, testing::ElementsAre(0, 0.5));
  const Watch end = [](double) { throw Error(ErrorCode::kInterrupted, "enough"); };
  EXPECT_THROW(scale(resnet(), gigabit(), {1, 2}, quick(), end), Error);
}

TEST(PhaseMap, NamesAWinnerForEveryCell) {
  const auto cells = phase_map(resnet(), gigabit(), {2, 8}, {1}, {0.01, 1, 4}, quick());
  ASSERT_EQ(cells.size(), 6U);
  for (const PhaseCell& cell : cells) {
    EXPECT_FALSE(cell.published.empty());
    EXPECT_GE(cell.joint_win, 1 - 1e-12);
  }
  EXPECT_LT(cells[0].iteration,
            cells[2].iteration);  // a hundredth of the time per byte against four times it
  EXPECT_EQ(to_json(cells).size(), 6U);
}

TEST(FlipPoints, ChangeTheWinner) {
  for (const Flip& flip : flip_points(resnet(), gigabit(), quick())) {
    EXPECT_GT(flip.factor, 1);
    EXPECT_NE(flip.before, flip.after);
    EXPECT_THAT(flip.sentence, testing::HasSubstr("wins once"));
  }
}

TEST(FlipPoints, CountServersFromNone) {
  // On a network that binds, servers of their own have both directions of every card.
  const auto flips = flip_points(*shipped_profile("vgg16"), made_cluster(4, 5e-6, 2e-9), quick());
  const auto found =
      std::find_if(flips.begin(), flips.end(), [](const Flip& flip) { return flip.change == "servers"; });
  ASSERT_NE(found, flips.end());
  EXPECT_THAT(found->after, testing::HasSubstr("dedicated"));
  EXPECT_THAT(found->sentence, testing::HasSubstr("dedicated servers."));
}

/// At a flip the winner before is behind by more than anybody would call a tie.
void expect_no_ties(const Cluster& cluster, const TuneOptions& asked) {
  for (const Flip& flip : flip_points(resnet(), cluster, asked)) {
    TuneOptions options = asked;
    if (flip.change == "servers")
      options.limits.dedicated_servers = static_cast<int>(std::lround(flip.factor / 2));
    options.workers = flip.change == "workers" ? static_cast<int>(std::lround(4 * flip.factor)) : 4;
    const double network = flip.change == "network" ? flip.factor : 1;
    const Profile profile = flip.change == "device" ? scaled(resnet(), 1, 1 / flip.factor) : resnet();
    const Answer there = tune(profile, with_network(cluster, network, network), options);
    double after = 0;
    for (const Entry& entry : there.ranking) {
      const std::string name = entry.title + " on " + describe(entry.plan.road);
      const double time = entry.prediction.iteration.count();
      if (name == flip.after) after = time;
      if (name == flip.before) {
        EXPECT_GT(time, after * (1 + kIndifferent)) << flip.sentence;
      }
    }
    EXPECT_GT(after, 0) << flip.sentence;
  }
}

TEST(FlipPoints, AreNoTiesThatTurnRound) {
  for (const double beta : {1e-9, 3e-9, 8e-9}) {
    for (const auto barrier :
         {std::optional<Barrier>(), std::optional(Barrier::kFull), std::optional(Barrier::kPerLayer)}) {
      TuneOptions options = quick();
      options.barrier = barrier;
      expect_no_ties(made_cluster(4, 50e-6, beta), options);
    }
  }
}

/// In the order of time, without gaps counted twice, from the first gradient to the end of the iteration.
void expect_a_path(const Explanation& e, const Entry& entry) {
  ASSERT_FALSE(e.critical_path.empty()) << entry.method;
  EXPECT_EQ(e.critical_path.front().from, Seconds{0}) << entry.method;
  EXPECT_NEAR(e.critical_path.back().until.count(), entry.prediction.iteration.count(), 1e-9);
  for (std::size_t i = 0; i + 1 < e.critical_path.size(); ++i) {
    EXPECT_LE(e.critical_path[i].from, e.critical_path[i].until) << entry.method << " " << i;
    EXPECT_LE(e.critical_path[i].until, e.critical_path[i + 1].from) << entry.method << " " << i;
  }
}

TEST(Explain, FollowsTheCriticalPathFromStartToEnd) {
  // With latencies as long as messages are, those of one channel overlap.
  for (const Cluster& cluster : {gigabit(), with_network(gigabit(), 100, 1)}) {
    for (const Entry& entry : tune(resnet(), cluster, quick()).ranking) {
      const Explanation e = explain(resnet(), cluster, entry.plan);
      expect_a_path(e, entry);
      EXPECT_LE(e.improvements.size(), 3U);
      for (const Improvement& i : e.improvements) EXPECT_GT(i.gain, Seconds{0});
    }
  }
}

TEST(Explain, FollowsTheCriticalPathThroughPulls) {
  for (const Placement placement : {Placement::kColocated, Placement::kDedicated}) {
    const Road road = ParameterServer{2, placement};
    const Planning job(resnet(), gigabit(), 4, {road});
    Entry entry;
    entry.plan = wfbp(job, job.roads[0]);
    // In halves: what appears last comes back first.
    const std::size_t half = entry.plan.messages.size() / 2;
    entry.plan.pulls.resize(2);
    for (std::size_t message = 0; message < entry.plan.messages.size(); ++message) {
      std::vector<Piece>& pieces = entry.plan.pulls[message < half ? 1 : 0].pieces;
      const std::vector<Piece>& pushed = entry.plan.messages[message].pieces;
      pieces.insert(pieces.end(), pushed.begin(), pushed.end());
    }
    entry.plan.sequence = pulls_behind_pushes(entry.plan);
    check(entry.plan, resnet());
    entry.prediction = simulate(job.work, entry.plan, job.roads[0].cost);
    const Explanation e = explain(resnet(), gigabit(), entry.plan);
    expect_a_path(e, entry);
    const auto pulls = [](const CriticalStep& step) { return step.what.starts_with("pull "); };
    EXPECT_TRUE(std::ranges::any_of(e.critical_path, pulls)) << describe(road);
  }
}

TEST(Explain, CountsTraffic) {
  // Ring of 4: 2 * 3/4 D a worker. Two servers: D a worker and 4 D / 2 a server.
  const Planning job(resnet(), gigabit(), 4, {AllReduce{}, ParameterServer{2}});
  const std::uint64_t d = job.work.total_bytes;
  EXPECT_EQ(explain(resnet(), gigabit(), wfbp(job, job.roads[0])).worker_traffic.count, d * 3 / 2);
  const Explanation servers = explain(resnet(), gigabit(), wfbp(job, job.roads[1]));
  EXPECT_EQ(servers.worker_traffic.count, d);
  EXPECT_EQ(servers.server_traffic.count, 2 * d);
}

TEST(Explain, CountsTrafficBehindALocalSum) {
  // 2 hosts of 4: 3/4 D inside in either stage and D/4 pushed; two servers take D from either host.
  const Cluster cluster = made_cluster_of_hosts(3, 4, 200e-6, 8e-9);
  const ParameterServer road{2, Placement::kDedicated, Assignment::kEven, LocalSum::kFirst};
  const Planning job(resnet(), cluster, 8, {road});
  const std::uint64_t d = job.work.total_bytes;
  const Explanation e = explain(resnet(), cluster, wfbp(job, job.roads[0]));
  EXPECT_EQ(e.worker_traffic.count, d * 7 / 4);
  EXPECT_EQ(e.server_traffic.count, d);
}

}  // namespace
}  // namespace commtune::tuner
