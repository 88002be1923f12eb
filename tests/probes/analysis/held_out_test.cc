#include "probes/analysis/held_out.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace commtune::probes {
namespace {

Sample at(std::uint64_t bytes, double seconds, double relative_half_width = 0) {
  return {Bytes{bytes}, Seconds{seconds}, Seconds{seconds * relative_half_width}, 5};
}

/// Straight between the sizes beside it.
Curve through_ends(std::span<const Sample> samples) {
  const Sample &first = samples.front(), &last = samples.back();
  const double beta =
      (last.time - first.time).count() / static_cast<double>(last.size.count - first.size.count);
  return {first.time - Seconds{beta * static_cast<double>(first.size.count)}, SecondsPerByte{beta}};
}

TEST(StartupShare, IsWhatLargeMessagesBytesDoNotTake) {
  // 1 ms; small parts make 1 KiB take twice that; from there on 10 ns a byte.
  const Curve curve({{Bytes{0}, Seconds{1e-3}, SecondsPerByte{1e-6}},
                     {1_KiB, Seconds{2.024e-3 - 10e-9 * 1024}, SecondsPerByte{10e-9}}});
  EXPECT_GT(startup_share(curve, 1_KiB), 0.99);
  EXPECT_NEAR(startup_share(curve, 200_KiB), 0.5, 0.01);
  EXPECT_LT(startup_share(curve, 64_MiB), 0.01);
}

TEST(BetweenSizes, IsAQuarterOfWhatTheOthersMissASizeBy) {
  // By the line through 1 KB and 3 KB, 2 KB take 2 ms; they took e^0.2 times that.
  const std::vector<Sample> samples{at(1000, 1e-3), at(2000, 2e-3 * std::exp(0.2)), at(3000, 3e-3)};
  const SquaredErrors errors = between_sizes(samples, through_ends);
  EXPECT_EQ(errors.count, 1);
  EXPECT_NEAR(errors.deviation(), 0.05, 1e-9);
}

TEST(BetweenSizes, LeavesOutWhatTheSamplesOwnIntervalExplains) {
  // A half width of 1.96 * 3 % is a standard deviation of 3 %: of 5 %, 4 % are left.
  const std::vector<Sample> samples{at(1000, 1e-3), at(2000, 2e-3 * std::exp(0.2), 1.96 * 0.03),
                                    at(3000, 3e-3)};
  EXPECT_NEAR(between_sizes(samples, through_ends).deviation(), 0.04, 1e-5);
}

TEST(BetweenSizes, OfTwoSizesIsNothing) {
  const std::vector<Sample> samples{at(1000, 1e-3), at(2000, 2e-3)};
  EXPECT_EQ(between_sizes(samples, through_ends).count, 0);
}

Fit held_fit(double alpha, double beta) {
  Fit fit;
  fit.curve = Curve{Seconds{alpha}, SecondsPerByte{beta}};
  fit.smallest = 1_KiB;
  fit.largest = 4_MiB;
  fit.quality.samples = 6;
  return fit;
}

/// Four hosts whose rings of four and of two take so many times as long as the formula says.
Cluster with_rings(double four, double two) {
  Cluster cluster;
  for (int i = 0; i < 4; ++i) cluster.hosts.push_back({"h" + std::to_string(i), 1});
  cluster.links[LinkClass::kInterHost] = {held_fit(1e-4, 8e-9), held_fit(1e-5, 8e-9), {}};
  const auto add = [&](int workers, double factor) {
    const double stages = 2.0 * (workers - 1);
    cluster.operations.push_back({AllReduce{},
                                  Operation::kAllReduce,
                                  workers,
                                  held_fit(factor * stages * 1e-4, factor * stages / workers * 8e-9),
                                  {}});
  };
  add(4, four);
  add(2, two);
  return cluster;
}

TEST(RoadsHeldOut, SaysHowMuchARoadDiffersFromWhatTheOthersSay) {
  const double alike = roads_held_out(with_rings(1.5, 1.5)).startup.deviation();
  const double apart = roads_held_out(with_rings(1.5, 1.0)).startup.deviation();
  EXPECT_LT(alike, 0.1);
  EXPECT_NEAR(apart, std::log(1.5), 0.1);
}

TEST(RoadsHeldOut, ARoadThatIsSaidToCostNextToNothingIsWrongByTenAtMost) {
  // A noisy probe fitted two ring members a stage that hardly costs anything.
  const CostErrors errors = roads_held_out(with_rings(1.5, 1e-12));
  EXPECT_NEAR(errors.startup.deviation(), std::log(10), 1e-9);
  EXPECT_NEAR(errors.rate.deviation(), std::log(10), 1e-9);
}

TEST(RoadsHeldOut, OfSeveralHostsAsksRoadsBetweenThem) {
  // With two ranks a host, what a ring inside one differs by says nothing of the other.
  Cluster cluster = with_rings(1.5, 5.0);
  cluster.links[LinkClass::kIntraHost] = cluster.links.at(LinkClass::kInterHost);
  EXPECT_EQ(roads_held_out(cluster).startup.count, 2);
  for (Host& host : cluster.hosts) host.slots = 2;
  const CostErrors between = roads_held_out(cluster);
  EXPECT_EQ(between.startup.count, 1);
  EXPECT_LT(between.startup.deviation(), std::log(2.0));
  cluster.hosts = {{"h", 4}};
  EXPECT_EQ(roads_held_out(cluster).startup.count, 2);
}

TEST(RoadsHeldOut, DoesNotAskFitsOfFewSizes) {
  Cluster cluster = with_rings(1.5, 1.0);
  for (OperationFit& fit : cluster.operations) fit.alone.quality.samples = 2;
  EXPECT_EQ(roads_held_out(cluster).startup.count, 0);
}

}  // namespace
}  // namespace commtune::probes
