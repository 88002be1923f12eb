#include "tuner/search/fusion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <random>

namespace commtune::tuner {
namespace {

using testing::ElementsAre;

FusionCost line(double a, double b) {
  const Curve curve{Seconds{a}, SecondsPerByte{b}};
  return {curve, curve};
}

/// When the last byte of the last group is back.
double fused_end(const FusionJob& job, const FusionCost& cost, const Groups& groups) {
  double free = 0, end = 0;
  std::size_t next = 0;
  for (const std::size_t size : groups) {
    Bytes bytes;
    for (std::size_t i = 0; i < size; ++i) bytes += Bytes{job.bytes[next + i]};
    next += size;
    const double start = std::max(free, job.ready[next - 1]);
    free = start + cost.occupancy(bytes).count();
    end = std::max(end, start + cost.alone(bytes).count());
  }
  return end;
}

TEST(FusedEnd, WalksTheGroups) {
  // Ready 1, 2, 5; 10 B each at 0.1 s, start-up 1. {2, 1}: 2 .. 5 (1 + 20 * 0.1), 5 .. 7.
  const FusionJob job{{1, 2, 5}, {10, 10, 10}};
  EXPECT_DOUBLE_EQ(fused_end(job, line(1, 0.1), {2, 1}), 7);
  EXPECT_DOUBLE_EQ(fused_end(job, line(1, 0.1), {1, 1, 1}), 7);  // 1 .. 3, 3 .. 5, 5 .. 7
  EXPECT_DOUBLE_EQ(fused_end(job, line(1, 0.1), {3}), 9);        // 5 .. 9
}

TEST(ExactFusion, FusesNothingThatIsFree) {
  // Each is back before the next exists: fusing would only wait.
  EXPECT_THAT(exact_fusion({{1, 10, 20}, {10, 10, 10}}, line(1, 0.1)), ElementsAre(1, 1, 1));
}

TEST(ExactFusion, FusesWhatAppearsAtOnce) {
  EXPECT_THAT(exact_fusion({{5, 5, 5}, {10, 10, 10}}, line(1, 0.1)), ElementsAre(3));
  EXPECT_THAT(exact_fusion({{}, {}}, line(1, 0.1)), ElementsAre());
}

/// A random cost that never falls, with jumps and slopes of all kinds.
Curve random_cost(std::mt19937_64& random) {
  std::uniform_real_distribution<double> unit(0, 1);
  std::vector<CurvePiece> pieces;
  std::uint64_t from = 0;
  double ended = 0;
  for (int i = 0; i < 3; ++i) {
    const double beta = 0.1 * unit(random);
    const double alpha = std::max(0.0, ended - beta * static_cast<double>(from)) + unit(random);
    pieces.push_back({Bytes{from}, Seconds{alpha}, SecondsPerByte{beta}});
    from += 1 + random() % 30;
    ended = alpha + beta * static_cast<double>(from);
  }
  return Curve{pieces};
}

FusionJob random_job(std::mt19937_64& random, std::size_t most) {
  FusionJob job;
  double ready = 0;
  const std::size_t n = 1 + random() % most;
  for (std::size_t i = 0; i < n; ++i) {
    ready += static_cast<double>(random() % 4) * 0.7;
    job.ready.push_back(ready);
    job.bytes.push_back(1 + random() % 20);
  }
  return job;
}

double best_of_all(const FusionJob& job, const FusionCost& cost) {
  double best = std::numeric_limits<double>::infinity();
  const std::size_t n = job.ready.size();
  for (unsigned cuts = 0; cuts < (1U << (n - 1)); ++cuts) {
    Groups groups{1};
    for (std::size_t i = 1; i < n; ++i) {
      if ((cuts >> (i - 1) & 1U) != 0) groups.push_back(0);
      ++groups.back();
    }
    best = std::min(best, fused_end(job, cost, groups));
  }
  return best;
}

TEST(ExactFusion, EqualsExhaustiveSearchForAnyCost) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 1000; ++round) {
    const FusionJob job = random_job(random, 10);
    const Curve curve = random_cost(random);
    const FusionCost cost{curve, curve};
    const Groups groups = exact_fusion(job, cost);
    ASSERT_EQ(std::accumulate(groups.begin(), groups.end(), std::size_t{0}), job.ready.size());
    ASSERT_NEAR(fused_end(job, cost, groups), best_of_all(job, cost), 1e-9) << "round " << round;
  }
}

TEST(ExactFusion, EqualsExhaustiveSearchWhenLatenciesOverlap) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 1000; ++round) {
    const FusionJob job = random_job(random, 9);
    const double b = 0.05, o = 0.3;
    const FusionCost cost{Curve{Seconds{o}, SecondsPerByte{b}}, Curve{Seconds{o + 1}, SecondsPerByte{b}}};
    ASSERT_NEAR(fused_end(job, cost, exact_fusion(job, cost)), best_of_all(job, cost), 1e-9);
  }
}

/// E(k) = min_j max(E(j), r_k) + t(bytes from j to k), with nothing left out.
double best_of_all_groups(const FusionJob& job, const Curve& cost) {
  std::vector<double> ends{0};
  for (std::size_t count = 1; count <= job.ready.size(); ++count) {
    Bytes bytes;
    ends.push_back(std::numeric_limits<double>::infinity());
    for (std::size_t prefix = count; prefix-- > 0;) {
      bytes += Bytes{job.bytes[prefix]};
      const double start = std::max(ends[prefix], job.ready[count - 1]);
      ends[count] = std::min(ends[count], start + cost(bytes).count());
    }
  }
  return ends.back();
}

TEST(ExactFusion, LeavesOutNoPrefixThatMatters) {
  // Hundreds of tensors, and start-ups so dear that they wait for the channel in their hundreds.
  std::mt19937_64 random(4);
  for (int round = 0; round < 60; ++round) {
    const FusionJob job = random_job(random, 600);
    const Curve cost = round % 2 == 0 ? random_cost(random) : line(40, 0.1).alone;
    const Groups groups = exact_fusion(job, {cost, cost});
    ASSERT_EQ(std::accumulate(groups.begin(), groups.end(), std::size_t{0}), job.ready.size());
    const double best = best_of_all_groups(job, cost);
    ASSERT_NEAR(fused_end(job, {cost, cost}, groups), best, 1e-9 * best) << "round " << round;
  }
}

TEST(MgWfbp, JoinsAsPublished) {
  // a = 1, b = 0.1. Tensor 0 starts at 1, lasts 2. Tensor 1 (ready 1.5 < 3, and 1.5 - 1 < a) joins: starts
  // at 1.5, lasts 3, to 4.5. Tensor 2 (ready 4.4 < 4.5, but 4.4 - 1.5 >= a) does not: starts at 4.5. Tensor 3
  // (ready 4.45 < 4.5) joins it.
  EXPECT_THAT(mg_wfbp_fusion({{1, 1.5, 4.4, 4.45}, {10, 10, 10, 10}}, 1, 0.1), ElementsAre(2, 2));
}

TEST(MgWfbp, IsNeverBetterThanExactNorWorseThanTensorByTensor) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 2000; ++round) {
    const FusionJob job = random_job(random, 60);
    const double a = static_cast<double>(random() % 50) / 10, b = static_cast<double>(random() % 20) / 100;
    const FusionCost cost = line(a, b);
    const double exact = fused_end(job, cost, exact_fusion(job, cost));
    const double greedy = fused_end(job, cost, mg_wfbp_fusion(job, a, b));
    const double apart = fused_end(job, cost, Groups(job.ready.size(), 1));
    ASSERT_LE(exact, greedy + 1e-9);
    ASSERT_LE(greedy, apart + 1e-9) << "round " << round;
  }
}

TEST(MgWfbpLine, RecoversALine) {
  const LatencyLine fit = mg_wfbp_line(Curve{Seconds{3e-4}, SecondsPerByte{2e-9}});
  EXPECT_NEAR(fit.a, 3e-4, 1e-12);
  EXPECT_NEAR(fit.b, 2e-9, 1e-16);
}

}  // namespace
}  // namespace commtune::tuner
