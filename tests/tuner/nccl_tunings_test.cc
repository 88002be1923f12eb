#include "tuner/nccl_tunings.h"

#include <gmock/gmock.h>

#include "tests/tuner/testbed.h"

namespace commtune::tuner {
namespace {

using ::testing::IsEmpty;

constexpr NcclTuning kRingLl{NcclAlgorithm::kRing, NcclProtocol::kLl};
constexpr NcclTuning kRingSimple{NcclAlgorithm::kRing, NcclProtocol::kSimple};
constexpr NcclTuning kTreeLl{NcclAlgorithm::kTree, NcclProtocol::kLl};

Fit fitted(double alpha, double beta, double deviation = 0) {
  Fit fit;
  fit.curve = Curve{Seconds{alpha}, SecondsPerByte{beta}};
  fit.smallest = 1_KiB;
  fit.largest = 64_MiB;
  fit.deviation = {deviation, deviation};
  return fit;
}

/// NCCL's own choice takes 100 us and 1 ns a byte.
Cluster probed(const std::vector<NcclFit>& fits, double deviation = 0) {
  Cluster cluster = made_cluster(4, 100e-6, 1e-9);
  cluster.nccl = fits;
  cluster.nccl.push_back({Operation::kAllReduce, {}, 4, fitted(100e-6, 1e-9, deviation)});
  return cluster;
}

NcclFit all_reduce_by(const NcclTuning& tuning, const Fit& fit) {
  return {Operation::kAllReduce, tuning, 4, fit};
}

TEST(NcclTunings, AreTheFastestOfEachSize) {
  // The first is faster than the second up to 50,000 B, and that one than NCCL's choice by 50 us everywhere.
  const NcclTuningTable table = nccl_tunings(probed(
      {all_reduce_by(kRingLl, fitted(10e-6, 1.8e-9)), all_reduce_by(kRingSimple, fitted(50e-6, 1e-9))}));
  ASSERT_EQ(table.choices.size(), 1U);
  const NcclChoices& choices = table.choices.front();
  EXPECT_EQ(choices.ranks, 4);
  EXPECT_EQ(choices.nodes, 4);
  ASSERT_EQ(choices.ranges.size(), 2U);
  EXPECT_EQ(choices.ranges[0].tuning, kRingLl);
  EXPECT_EQ(choices.ranges[0].first, 1_KiB);
  EXPECT_NEAR(static_cast<double>(choices.ranges[0].last.count), 50'000, 1);
  EXPECT_EQ(choices.ranges[1].first.count, choices.ranges[0].last.count + 1);
  EXPECT_EQ(choices.ranges[1].last, 64_MiB);
  EXPECT_NEAR(choices.ranges[1].expected.count(), 50e-6 + 0.067108864, 1e-9);
}

TEST(NcclTunings, LeaveWhatNcclDoesAsFastItself) {
  // Faster up to 90,000 B alone.
  const Cluster cluster = probed({all_reduce_by(kRingLl, fitted(10e-6, 2e-9))});
  const NcclChoices choices = nccl_tunings(cluster).choices.front();
  ASSERT_EQ(choices.ranges.size(), 1U);
  EXPECT_NEAR(static_cast<double>(choices.ranges[0].last.count), 90'000, 1);
  EXPECT_THAT(nccl_tunings(probed({all_reduce_by(kRingLl, fitted(100e-6, 1e-9))})).choices.front().ranges,
              IsEmpty());
}

TEST(NcclTunings, LeaveWhatTheFitsCannotTellApart) {
  const Fit faster = fitted(95e-6, 0.95e-9, 0.015);
  EXPECT_EQ(nccl_tunings(probed({all_reduce_by(kTreeLl, faster)}, 0.01)).choices.front().ranges.size(), 1U);
  EXPECT_THAT(nccl_tunings(probed({all_reduce_by(kTreeLl, faster)}, 0.05)).choices.front().ranges, IsEmpty());
}

TEST(NcclTunings, PreferTheSimplestOfThoseThatAreAsFast) {
  NcclTuning with_channels = kRingSimple;
  with_channels.channels = 2;
  const Cluster cluster = probed({all_reduce_by(with_channels, fitted(50e-6, 0.50e-9, 0.02)),
                                  all_reduce_by(kRingSimple, fitted(50e-6, 0.51e-9, 0.02)),
                                  all_reduce_by(kTreeLl, fitted(50e-6, 0.6e-9, 0.02))});
  const NcclChoices choices = nccl_tunings(cluster).choices.front();
  ASSERT_FALSE(choices.ranges.empty());
  EXPECT_EQ(choices.ranges.back().tuning, kRingSimple);
}

TEST(NcclTunings, KeepToSizesThatWereMeasured) {
  Fit few = fitted(1e-6, 1e-10);
  few.smallest = 4_KiB;
  few.largest = 16_KiB;
  const NcclChoices choices = nccl_tunings(probed({all_reduce_by(kTreeLl, few)})).choices.front();
  ASSERT_EQ(choices.ranges.size(), 1U);
  EXPECT_EQ(choices.ranges[0].first, 4_KiB);
  EXPECT_EQ(choices.ranges[0].last, 16_KiB);
}

TEST(NcclTunings, AreNoneWithoutNcclsOwnChoiceToCompareWith) {
  Cluster cluster = made_cluster(4, 100e-6, 1e-9);
  EXPECT_THAT(nccl_tunings(cluster).choices, IsEmpty());
  cluster.nccl = {{Operation::kAllGather, kRingLl, 4, fitted(1e-6, 1e-10)}};
  EXPECT_THAT(nccl_tunings(cluster).choices, IsEmpty());
  cluster.nccl.push_back({Operation::kAllGather, {}, 4, fitted(100e-6, 1e-9)});
  EXPECT_EQ(nccl_tunings(cluster).choices.front().collective, NcclCollective::kAllGather);
}

TEST(NcclTunings, CountTheHostsOfTheirRanks) {
  Cluster cluster = probed({all_reduce_by(kRingLl, fitted(10e-6, 1e-9))});
  cluster.hosts = {{"a", 2}, {"b", 2}, {"c", 4}};
  EXPECT_EQ(nccl_tunings(cluster).choices.front().nodes, 2);
}

}  // namespace
}  // namespace commtune::tuner
