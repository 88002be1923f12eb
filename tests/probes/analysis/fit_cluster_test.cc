#include "probes/analysis/fit_cluster.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

namespace commtune::probes {
namespace {

ClusterFacts four_hosts() {
  ClusterFacts facts;
  facts.name = "lab";
  facts.transport = "mpi";
  facts.rank_hosts = {"a", "a", "b", "c"};
  facts.facts = {{"host.a.kernel", "Linux 6"}, {"setting.mtu", "1500"}};
  return facts;
}

ProbeSample message(int source, int destination, int in_flight, std::uint64_t bytes, double seconds) {
  ProbeSample sample;
  sample.quantity.source = source;
  sample.quantity.destination = destination;
  sample.quantity.in_flight = in_flight;
  sample.sample = {Bytes{bytes}, Seconds{seconds}, Seconds{seconds / 100}, 5};
  return sample;
}

ProbeSample scalar(Subject subject, int in_flight, double seconds) {
  ProbeSample sample;
  sample.quantity.subject = subject;
  sample.quantity.in_flight = in_flight;
  sample.sample = {Bytes{0}, Seconds{seconds}, Seconds{seconds / 100}, 20};
  return sample;
}

TEST(FitCluster, FindsTheLineThatSamplesLieOn) {
  std::vector<ProbeSample> samples;
  for (std::uint64_t bytes = 4; bytes <= 4 << 20; bytes *= 4) {
    samples.push_back(message(0, 2, 1, bytes, 300e-6 + 8e-9 * static_cast<double>(bytes)));
    samples.push_back(message(0, 1, 1, bytes, 20e-6 + 1e-10 * static_cast<double>(bytes)));
  }
  const Cluster cluster = fit_cluster(samples, four_hosts());
  const Fit& between = cluster.links.at(LinkClass::kInterHost).alone;
  EXPECT_NEAR(between.curve(Bytes{1 << 20}).count(), 300e-6 + 8e-9 * (1 << 20), 1e-6);
  EXPECT_EQ(between.largest, Bytes{4 << 20});
  const Fit& within = cluster.links.at(LinkClass::kIntraHost).alone;
  EXPECT_NEAR(within.curve(Bytes{4}).count(), 20e-6, 1e-7);
  ASSERT_EQ(cluster.hosts.size(), 3u);
  EXPECT_EQ(cluster.hosts[0].slots, 2);
}

TEST(FitCluster, LetsALaterSampleSupersedeAnEarlier) {
  std::vector<ProbeSample> samples{message(0, 2, 1, 4, 9.0), message(0, 2, 1, 1 << 20, 8e-3),
                                   message(0, 2, 1, 4, 3e-4)};
  EXPECT_EQ(latest(samples).size(), 2u);
  const Cluster cluster = fit_cluster(samples, four_hosts());
  EXPECT_NEAR(cluster.links.at(LinkClass::kInterHost).alone.curve(Bytes{4}).count(), 3e-4, 1e-5);
}

TEST(FitCluster, TakesTheCurveFromPairsWithSeveralSizes) {
  std::vector<ProbeSample> samples;
  for (std::uint64_t bytes = 4; bytes <= 4 << 20; bytes *= 4) {
    samples.push_back(message(0, 2, 1, bytes, 300e-6 + 8e-9 * static_cast<double>(bytes)));
  }
  // Pairs of a slow host, measured at one size for the matrix.
  for (const int other : {0, 1, 2}) samples.push_back(message(other, 3, 1, 4, 5e-3));
  const Cluster cluster = fit_cluster(samples, four_hosts());
  EXPECT_NEAR(cluster.links.at(LinkClass::kInterHost).alone.curve(Bytes{4}).count(), 300e-6, 3e-6);
}

TEST(FitCluster, DoesNotTakeASingleStreamOfTheSurveyForExact) {
  // Streams known to 3 % at 8 ns/B, of which three sizes, and one of the survey's, once, 10 % too short.
  std::vector<ProbeSample> samples{message(0, 2, 1, 4, 3e-4), message(0, 2, 1, 1 << 20, 8.7e-3)};
  for (const std::uint64_t bytes : {1 << 12, 1 << 14, 1 << 16, 1 << 18}) {
    samples.push_back(message(0, 2, 8, bytes, 20e-6 + 8e-9 * static_cast<double>(bytes)));
    samples.back().sample.half_width = samples.back().sample.time * 0.03;
  }
  samples.push_back(message(0, 2, 4, 1 << 20, 0.9 * 8e-9 * (1 << 20)));
  samples.back().sample.half_width = Seconds{0};
  samples.back().sample.repetitions = 1;
  const Fit streamed = fit_cluster(samples, four_hosts()).links.at(LinkClass::kInterHost).streamed;
  EXPECT_NEAR(streamed.curve(Bytes{1 << 18}).count(), 20e-6 + 8e-9 * (1 << 18), 0.02 * 8e-9 * (1 << 18));
}

TEST(FitCluster, PrefersTheMoreRepeatedOfTwoStreamsOfASize) {
  std::vector<ProbeSample> samples{message(0, 2, 1, 4, 3e-4), message(0, 2, 1, 1 << 20, 8.7e-3)};
  for (const std::uint64_t bytes : {1 << 16, 1 << 20}) {
    samples.push_back(message(0, 2, 8, bytes, 8e-9 * static_cast<double>(bytes)));
    samples.push_back(message(0, 2, 4, bytes, 9e-9 * static_cast<double>(bytes)));
    samples.back().sample.repetitions = 1;
  }
  const Fit streamed = fit_cluster(samples, four_hosts()).links.at(LinkClass::kInterHost).streamed;
  EXPECT_NEAR(streamed.curve(Bytes{1 << 20}).count(), 8e-9 * (1 << 20), 1e-6);
}

TEST(FitCluster, TakesTheLongerOfHandingOverAndBytesForAStream) {
  // 6 us to hand a message over, 8 ns for a byte to leave, at the same time: equal at 750 B.
  std::vector<ProbeSample> samples{message(0, 2, 1, 4, 3e-4), message(0, 2, 1, 1 << 20, 8.7e-3)};
  for (const std::uint64_t bytes : {4, 1 << 16, 1 << 19}) {
    samples.push_back(message(0, 2, 8, bytes, std::max(6e-6, 8e-9 * static_cast<double>(bytes))));
  }
  const Fit streamed = fit_cluster(samples, four_hosts()).links.at(LinkClass::kInterHost).streamed;
  EXPECT_NEAR(streamed.curve(Bytes{64}).count(), 6e-6, 0.03 * 6e-6);
  EXPECT_NEAR(streamed.curve(Bytes{3072}).count(), 8e-9 * 3072, 0.03 * 8e-9 * 3072);
  EXPECT_NEAR(streamed.curve(Bytes{1 << 19}).count(), 8e-9 * (1 << 19), 0.01 * 8e-9 * (1 << 19));
}

TEST(FitCluster, DoesNotTakeLargeStreamsForWhatDisturbedASmallOne) {
  // 64 B took four times as long as their bytes: so much longer do they alone take.
  std::vector<ProbeSample> samples{message(0, 2, 1, 4, 3e-4), message(0, 2, 1, 1 << 20, 8.7e-3)};
  for (const auto& [bytes, seconds] : std::vector<std::pair<std::uint64_t, double>>{
           {4, 0.35e-6}, {8, 0.35e-6}, {16, 2.35e-6}, {32, 0.44e-6}, {64, 3.06e-6}, {512, 4.5e-6}}) {
    samples.push_back(message(0, 2, 8, bytes, seconds));
  }
  samples.push_back(message(0, 2, 3, 1 << 20, 8.7e-9 * (1 << 20)));
  const Fit streamed = fit_cluster(samples, four_hosts()).links.at(LinkClass::kInterHost).streamed;
  for (const std::uint64_t bytes : {4 << 10, 16 << 10, 64 << 10, 256 << 10}) {
    const double seconds = 8.7e-9 * static_cast<double>(bytes);
    EXPECT_NEAR(streamed.curve(Bytes{bytes}).count(), seconds, 0.05 * seconds) << bytes;
  }
}

TEST(FitCluster, KnowsWhatBytesCostFromAllPairsThatAreAsFast) {
  // One pair's curve, whose largest stream was disturbed; what the survey streamed over the other pairs, once
  // each, of which those of host c are slow.
  std::vector<ProbeSample> samples{message(0, 2, 1, 4, 3e-4), message(0, 2, 1, 1 << 20, 8.7e-3)};
  const auto stream = [&](int from, int to, std::uint64_t bytes, double beta, double width) {
    samples.push_back(message(from, to, 4, bytes, beta * static_cast<double>(bytes)));
    samples.back().sample.half_width = samples.back().sample.time * width;
    samples.back().sample.repetitions = width > 0 ? 3 : 1;
  };
  stream(0, 2, 4, 1e-6, 0.1);
  stream(0, 2, 1 << 16, 8.2e-9, 0);
  stream(0, 2, 1 << 19, 8.8e-9, 0.08);
  for (const auto& [from, to] : std::vector<std::pair<int, int>>{{2, 0}, {1, 2}, {2, 1}}) {
    stream(from, to, 1 << 16, 8e-9, 0);
  }
  for (const auto& [from, to] : std::vector<std::pair<int, int>>{{0, 3}, {3, 0}, {2, 3}, {3, 2}}) {
    stream(from, to, 1 << 16, 40e-9, 0);
  }
  const Fit streamed = fit_cluster(samples, four_hosts()).links.at(LinkClass::kInterHost).streamed;
  EXPECT_NEAR(streamed.curve(Bytes{1 << 16}).count(), 8e-9 * (1 << 16), 0.02 * 8e-9 * (1 << 16));
}

TEST(FitCluster, GivesASlowHostASlowdownOfItsOwn) {
  // Host c's card takes five times as long per byte, and its messages 2 ms longer to arrive.
  std::vector<ProbeSample> samples;
  for (const auto& [from, to] :
       std::vector<std::pair<int, int>>{{0, 2}, {2, 0}, {0, 3}, {3, 0}, {2, 3}, {3, 2}}) {
    const bool slow = from == 3 || to == 3;
    samples.push_back(message(from, to, 1, 4, slow ? 2.3e-3 : 3e-4));
    samples.push_back(message(from, to, 8, 1 << 20, (slow ? 5 : 1) * 8e-9 * (1 << 20)));
  }
  const Cluster cluster = fit_cluster(samples, four_hosts());
  EXPECT_EQ(cluster.hosts[0].slowdown, HostSlowdown{});
  EXPECT_EQ(cluster.hosts[1].slowdown, HostSlowdown{});
  EXPECT_NEAR(cluster.hosts[2].slowdown.time_per_byte, 5, 1e-9);
  EXPECT_NEAR(cluster.hosts[2].slowdown.latency, 2.3e-3 / 3e-4, 1e-9);
  EXPECT_EQ(cluster.hosts[2].slowdown.compute, 1);
}

TEST(FitCluster, SeparatesStreamedFromAloneOperations) {
  std::vector<ProbeSample> samples;
  for (std::uint64_t bytes = 4096; bytes <= 4 << 20; bytes *= 4) {
    for (const int in_flight : {1, 8}) {
      ProbeSample sample;
      sample.quantity.subject = Subject::kOperation;
      sample.quantity.workers = 4;
      sample.quantity.in_flight = in_flight;
      const double alpha = in_flight == 1 ? 2e-3 : 3e-4;
      sample.sample = {Bytes{bytes}, Seconds{alpha + 12e-9 * static_cast<double>(bytes)}, Seconds{1e-6}, 5};
      samples.push_back(sample);
    }
  }
  const Cluster cluster = fit_cluster(samples, four_hosts());
  const OperationFit* fit = find_operation(cluster, AllReduce{}, Operation::kAllReduce, 4);
  ASSERT_NE(fit, nullptr);
  EXPECT_NEAR(fit->alone.curve(Bytes{65536}).count(), 2e-3 + 12e-9 * 65536, 1e-5);
  EXPECT_NEAR(fit->streamed.curve(Bytes{65536}).count(), 3e-4 + 12e-9 * 65536, 1e-5);
}

TEST(FitCluster, LeavesOutAStreamThatHidLessThanADeeperOne) {
  // 16 messages of 5 ms one after the other say nothing of the 30 us that each takes.
  std::vector<ProbeSample> samples;
  const auto add = [&](int in_flight, std::uint64_t bytes, double seconds) {
    ProbeSample sample;
    sample.quantity.subject = Subject::kOperation;
    sample.quantity.workers = 4;
    sample.quantity.in_flight = in_flight;
    sample.sample = {Bytes{bytes}, Seconds{seconds}, Seconds{1e-6}, 5};
    samples.push_back(sample);
  };
  for (const std::uint64_t bytes : {16, 1 << 10, 1 << 16}) {
    add(1, bytes, 5e-3 + 12e-9 * static_cast<double>(bytes));
    add(16, bytes, std::max(3e-4, 12e-9 * static_cast<double>(bytes)));
    add(64, bytes, 30e-6 + 12e-9 * static_cast<double>(bytes));
  }
  const Cluster cluster = fit_cluster(samples, four_hosts());
  const OperationFit* fit = find_operation(cluster, AllReduce{}, Operation::kAllReduce, 4);
  ASSERT_NE(fit, nullptr);
  EXPECT_NEAR(fit->streamed.curve(Bytes{16}).count(), 30e-6, 3e-6);
}

/// Of the first three ranks, each on a host of its own.
std::optional<OperationFit> ring_of_three(const std::vector<ProbeSample>& samples) {
  ClusterFacts facts = four_hosts();
  facts.rank_hosts = {"a", "d", "b", "c"};
  const Cluster cluster = fit_cluster(samples, facts);
  const OperationFit* fit = find_operation(cluster, AllReduce{}, Operation::kAllReduce, 3);
  return fit != nullptr ? std::optional(*fit) : std::nullopt;
}

TEST(FitCluster, TakesTheLongerOfTheTwoForAStreamOfOperationsToo) {
  // Ring of three: 150 us to hand a message over, 4/3 of its bytes over links of 8 ns/B, equal at 14 KB.
  std::vector<ProbeSample> samples{message(0, 2, 1, 4, 3e-4), message(0, 2, 1, 1 << 20, 8.7e-3)};
  for (const std::uint64_t bytes : {4, 1 << 16, 1 << 19}) {
    samples.push_back(message(0, 2, 8, bytes, std::max(6e-6, 8e-9 * static_cast<double>(bytes))));
  }
  const auto time = [](std::uint64_t bytes) {
    return std::max(150e-6, 4.0 / 3 * 8e-9 * static_cast<double>(bytes));
  };
  for (const int in_flight : {1, 8}) {
    for (const std::uint64_t bytes : {16, 1 << 19}) {
      ProbeSample sample;
      sample.quantity.subject = Subject::kOperation;
      sample.quantity.workers = 3;
      sample.quantity.in_flight = in_flight;
      sample.sample = {Bytes{bytes}, Seconds{time(bytes)}, Seconds{1e-6}, 5};
      samples.push_back(sample);
    }
  }
  const std::optional<OperationFit> fit = ring_of_three(samples);
  ASSERT_TRUE(fit);
  for (const std::uint64_t bytes : {1 << 10, 1 << 16}) {
    EXPECT_NEAR(fit->streamed.curve(Bytes{bytes}).count(), time(bytes), 0.04 * time(bytes)) << bytes;
  }
}

TEST(FitCluster, TakesOneStreamedSizeForAll) {
  // Ring of three over links of 8 ns/B: 4/3 of them by the formula. One stream of 64 KiB took 1.5 times that.
  std::vector<ProbeSample> samples{message(0, 2, 1, 4, 3e-4), message(0, 2, 1, 1 << 20, 8.7e-3)};
  for (const std::uint64_t bytes : {4, 1 << 10, 1 << 16, 1 << 20}) {
    samples.push_back(message(0, 2, 8, bytes, 8e-9 * static_cast<double>(bytes)));
  }
  const auto streamed = [](std::uint64_t bytes) { return 1.5 * 4.0 / 3 * 8e-9 * static_cast<double>(bytes); };
  ProbeSample sample;
  sample.quantity.subject = Subject::kOperation;
  sample.quantity.workers = 3;
  for (const std::uint64_t bytes : {16, 1 << 20}) {
    sample.sample = {Bytes{bytes}, Seconds{2e-3 + streamed(bytes)}, Seconds{1e-6}, 5};
    samples.push_back(sample);
  }
  sample.quantity.in_flight = 8;
  sample.sample = {64_KiB, Seconds{streamed(1 << 16)}, Seconds{1e-6}, 5};
  samples.push_back(sample);
  const std::optional<OperationFit> fit = ring_of_three(samples);
  ASSERT_TRUE(fit);
  ASSERT_FALSE(fit->streamed.curve.empty());
  EXPECT_EQ(fit->streamed.smallest, 64_KiB);
  EXPECT_EQ(fit->streamed.largest, 64_KiB);
  for (const std::uint64_t bytes : {1 << 13, 1 << 16, 1 << 19}) {
    EXPECT_NEAR(fit->streamed.curve(Bytes{bytes}).count(), streamed(bytes), 0.03 * streamed(bytes)) << bytes;
  }
}

TEST(FitCluster, CorrectsARoadByTheLatestPlanThatWasRunOnIt) {
  std::vector<ProbeSample> samples{message(0, 2, 1, 4, 3e-4), message(0, 2, 1, 1 << 20, 8.7e-3)};
  ProbeSample sample;
  sample.quantity.subject = Subject::kOperation;
  sample.quantity.workers = 3;
  for (const std::uint64_t bytes : {16, 1 << 20}) {
    sample.sample = {Bytes{bytes}, Seconds{2e-3 + 16e-9 * static_cast<double>(bytes)}, Seconds{1e-6}, 5};
    samples.push_back(sample);
  }
  const std::optional<OperationFit> before = ring_of_three(samples);
  ProbeSample plan;
  plan.quantity.subject = Subject::kPlan;
  plan.quantity.workers = 3;
  plan.sample = {100_MiB, Seconds{0.35}, Seconds{0.01}, 7};
  for (const auto& [digest, factor] : {std::pair("first", 1.1), std::pair("second", 1.31)}) {
    plan.costs = {digest, Seconds{0.253}, {factor, factor, {1e-3, 1e-3}}, {1.2, 1.2, {1e-3, 1e-3}}};
    samples.push_back(plan);
  }
  const std::optional<OperationFit> after = ring_of_three(samples);
  ASSERT_TRUE(before && after);
  for (const Bytes m : {16_B, 64_KiB, 1_MiB})
    EXPECT_NEAR(after->alone.curve(m) / before->alone.curve(m), 1.31, 1e-9);
  EXPECT_LE(after->alone.deviation.rate, 1e-3);
}

TEST(FitCluster, GivesRatesAndSlowDowns) {
  std::vector<ProbeSample> samples;
  for (std::uint64_t bytes = 1 << 16; bytes <= 1 << 22; bytes *= 4) {
    ProbeSample sum;
    sum.quantity.subject = Subject::kSum;
    sum.quantity.source = 0;
    sum.sample = {Bytes{bytes}, Seconds{2e-10 * static_cast<double>(bytes)}, Seconds{0}, 5};
    samples.push_back(sum);
  }
  samples.push_back(scalar(Subject::kStep, 0, 2.0e-3));
  samples.push_back(scalar(Subject::kStep, 4, 2.3e-3));
  samples.push_back(scalar(Subject::kTraffic, 4, 1.0e-3));
  samples.push_back(scalar(Subject::kTraffic, 4, 1.2e-3));
  samples.back().quantity.computing = true;
  samples.push_back(scalar(Subject::kJitter, 1, 4e-5));
  samples.push_back(scalar(Subject::kHeadOfLine, 32, 4e-3));
  samples.back().quantity.road = ParameterServer{4};
  samples.push_back(scalar(Subject::kHeadOfLine, 8, 1e-3));
  samples.back().quantity.road = AllReduce{Collective::kRing};
  const Cluster cluster = fit_cluster(samples, four_hosts());
  EXPECT_NEAR(cluster.reduce_seconds_per_byte.value, 2e-10, 1e-15);
  EXPECT_NEAR(cluster.interference.value, 0.15, 1e-9);  // 2.3 / 2.0 - 1
  EXPECT_NEAR(cluster.contention.value, 0.2, 1e-9);     // 1.2 / 1.0 - 1
  EXPECT_NEAR(cluster.jitter_seconds.value, 4e-5, 1e-12);
  EXPECT_NEAR(cluster.head_of_line_seconds.value, 4e-3, 1e-12);
  EXPECT_NEAR(cluster.connection_head_of_line_seconds.value, 1e-3, 1e-12);
}

TEST(FitCluster, GivesWhatGpusTake) {
  std::vector<ProbeSample> samples{scalar(Subject::kLaunch, 1, 4e-6), scalar(Subject::kUpload, 1, 2e-4),
                                   scalar(Subject::kDownload, 1, 1e-4)};
  for (ProbeSample& sample : samples) sample.sample.size = 4_MiB;
  const GpuCosts costs = fit_cluster(samples, four_hosts()).gpu;
  EXPECT_NEAR(costs.launch_seconds.value, 4e-6, 1e-15);
  EXPECT_NEAR(costs.upload_seconds_per_byte.value * double{4 << 20}, 2e-4, 1e-12);
  EXPECT_NEAR(costs.download_seconds_per_byte.value * double{4 << 20}, 1e-4, 1e-12);
}

/// Of fp16 only half of what is needed was measured.
TEST(FitCluster, KnowsTypesWhoseCastsAndSumsWereMeasured) {
  const auto measured = [](Subject subject, WireFormat wire, double seconds) {
    ProbeSample sample;
    sample.quantity.subject = subject;
    sample.quantity.wire = wire;
    sample.quantity.source = 0;
    sample.sample = {1_MiB, Seconds{seconds}, Seconds{0}, 12};
    return sample;
  };
  const std::vector<ProbeSample> samples{measured(Subject::kCast, WireFormat::kBfloat16, 4e-4),
                                         measured(Subject::kCastSum, WireFormat::kBfloat16, 2e-4),
                                         measured(Subject::kCast, WireFormat::kFloat16, 3e-4)};
  const Cluster cluster = fit_cluster(samples, four_hosts());
  ASSERT_EQ(cluster.casts.size(), 1U);
  const CastCosts& costs = cluster.casts.at(WireFormat::kBfloat16);
  EXPECT_NEAR(costs.cast_seconds_per_byte.value * double{1 << 20}, 4e-4, 1e-12);
  EXPECT_NEAR(costs.reduce_seconds_per_byte.value * double{1 << 20}, 2e-4, 1e-12);
}

TEST(FitCluster, LeavesOutWhatOneSizeCannotCarry) {
  const std::vector<ProbeSample> samples{message(0, 2, 1, 4, 3e-4)};
  EXPECT_TRUE(fit_cluster(samples, four_hosts()).links.empty());
  EXPECT_TRUE(fit_cluster({}, four_hosts()).operations.empty());
}

TEST(Fingerprint, ChangesWithTheClusterButNotWithItsName) {
  ClusterFacts facts = four_hosts();
  const std::string before = fingerprint(facts);
  EXPECT_EQ(before.size(), 16u);
  facts.name = "other";
  EXPECT_EQ(fingerprint(facts), before);
  facts.facts["host.a.kernel"] = "Linux 7";
  EXPECT_NE(fingerprint(facts), before);
  facts = four_hosts();
  facts.rank_hosts.emplace_back("d");
  EXPECT_NE(fingerprint(facts), before);
}

TEST(Fingerprint, ChangesWithTheWireRevisionButNotWithAReleaseAlone) {
  ClusterFacts facts = four_hosts();
  // As version 0.1.0 computed it, before there was a revision: that is the first one.
  EXPECT_EQ(fingerprint(facts), "60f1d123e3fd0df9");
  facts.facts["wire_revision"] = "1";
  facts.facts["release.a.open_mpi"] = "4.1.4";
  EXPECT_EQ(fingerprint(facts), "60f1d123e3fd0df9");
  facts.facts["wire_revision"] = "2";
  EXPECT_NE(fingerprint(facts), "60f1d123e3fd0df9");
}

}  // namespace
}  // namespace commtune::probes
