#include "probes/analysis/links.h"

#include <gmock/gmock.h>

#include <random>

namespace commtune::probes {
namespace {

constexpr double kNormal = 8e-9;  // seconds per byte: 1 Gb/s
constexpr double kLinkLatency = 250e-6;

/// n hosts with one rank each, their links' times as they would be measured.
class Hosts {
 public:
  explicit Hosts(int n) : n_(n), beta_(cells(kNormal)), latency_(cells(kLinkLatency)) {
    for (int i = 0; i < n; ++i) names_.push_back("h" + std::to_string(i + 1));
  }
  Hosts& link(int from, int to, double beta) {
    beta_[cell(from, to)] = beta;
    return *this;
  }
  Hosts& slow_send(int host, double factor) {
    for (int other = 0; other < n_; ++other) beta_[cell(host, other)] *= factor;
    return *this;
  }
  Hosts& slow_receive(int host, double factor) {
    for (int other = 0; other < n_; ++other) beta_[cell(other, host)] *= factor;
    return *this;
  }
  Hosts& far(int host, double seconds) {
    for (int other = 0; other < n_; ++other) {
      latency_[cell(host, other)] += seconds;
      latency_[cell(other, host)] += seconds;
    }
    return *this;
  }
  Hosts& near(int a, int b, double latency) {
    latency_[cell(a, b)] = latency_[cell(b, a)] = latency;
    return *this;
  }
  Hosts& noise(double relative, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<double> factor(1, relative);
    for (double& value : beta_) value *= factor(random);
    for (double& value : latency_) value *= factor(random);
    return *this;
  }

  LinkReport report() const {
    std::vector<ProbeSample> samples;
    for (int from = 0; from < n_; ++from) {
      for (int to = 0; to < n_; ++to) {
        if (from == to) continue;
        ProbeSample sample;
        sample.quantity.source = from;
        sample.quantity.destination = to;
        sample.sample = {Bytes{4}, Seconds{latency_[cell(from, to)]}, Seconds{0}, 5};
        if (from < to) samples.push_back(sample);
        sample.quantity.in_flight = 4;
        sample.sample = {Bytes{1 << 17}, Seconds{beta_[cell(from, to)] * (1 << 17)}, Seconds{0}, 5};
        samples.push_back(sample);
      }
    }
    return analyse_links(samples, names_);
  }

 private:
  std::vector<double> cells(double value) const {
    return std::vector<double>(static_cast<std::size_t>(n_ * n_), value);
  }
  std::size_t cell(int from, int to) const {
    return static_cast<std::size_t>(from) * static_cast<std::size_t>(n_) + static_cast<std::size_t>(to);
  }
  int n_;
  std::vector<std::string> names_;
  std::vector<double> beta_, latency_;
};

TEST(AnalyseLinks, FindsNothingOnAUniformCluster) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const LinkReport report = Hosts(8).noise(0.03, seed).report();
    EXPECT_TRUE(report.verdicts.empty()) << report.verdicts.front().text;
    EXPECT_EQ(report.groups.size(), 1u);
  }
}

TEST(AnalyseLinks, FindsASlowHost) {
  // A card of a fifth of the rate slows every link of its host, both ways, and no other.
  const LinkReport report = Hosts(4)
                                .link(0, 2, 5 * kNormal)
                                .slow_send(2, 5)
                                .slow_receive(2, 5)
                                .link(0, 2, 5 * kNormal)
                                .noise(0.02, 1)
                                .report();
  ASSERT_EQ(report.verdicts.size(), 1u);
  EXPECT_EQ(report.verdicts[0].kind, VerdictKind::kSlowHost);
  EXPECT_EQ(report.verdicts[0].host, 2);
  EXPECT_NEAR(report.verdicts[0].ratio, 5, 0.5);
  EXPECT_THAT(report.verdicts[0].text, testing::HasSubstr("host h3"));
  EXPECT_EQ(report.groups.size(), 1u);
}

TEST(AnalyseLinks, FindsASlowHostWhateverTheLatenciesLookLike) {
  // On a busy machine h1 and h2 seemed close to each other, and so did h3 and h4: of that pair h3, which is
  // five times as slow as all others, was the class.
  Hosts hosts(4);
  hosts.slow_send(2, 5).slow_receive(2, 5);
  hosts.near(0, 1, 376e-6).near(0, 2, 595e-6).near(0, 3, 636e-6);
  hosts.near(1, 2, 714e-6).near(1, 3, 643e-6).near(2, 3, 551e-6);
  const LinkReport report = hosts.report();
  ASSERT_EQ(report.verdicts.size(), 1U);
  EXPECT_EQ(report.verdicts[0].kind, VerdictKind::kSlowHost);
  EXPECT_EQ(report.verdicts[0].host, 2);
  EXPECT_NEAR(report.verdicts[0].ratio, 5, 0.1);
}

TEST(AnalyseLinks, TellsSendingFromReceiving) {
  const LinkReport send = Hosts(4).slow_send(1, 3).noise(0.02, 2).report();
  ASSERT_EQ(send.verdicts.size(), 1u);
  EXPECT_EQ(send.verdicts[0].kind, VerdictKind::kSlowSend);
  EXPECT_EQ(send.verdicts[0].host, 1);
  const LinkReport receive = Hosts(4).slow_receive(3, 3).noise(0.02, 3).report();
  ASSERT_EQ(receive.verdicts.size(), 1u);
  EXPECT_EQ(receive.verdicts[0].kind, VerdictKind::kSlowReceive);
  EXPECT_EQ(receive.verdicts[0].host, 3);
}

TEST(AnalyseLinks, FindsTwoSlowHostsThatAreSlowToEachOtherToo) {
  const LinkReport report = Hosts(6)
                                .slow_send(0, 4)
                                .slow_receive(0, 4)
                                .slow_send(5, 4)
                                .slow_receive(5, 4)
                                .link(0, 5, 4 * kNormal)
                                .link(5, 0, 4 * kNormal)
                                .report();
  ASSERT_EQ(report.verdicts.size(), 2u);
  EXPECT_EQ(report.verdicts[0].host, 0);
  EXPECT_EQ(report.verdicts[1].host, 5);
  EXPECT_EQ(report.groups.size(), 1u);
}

TEST(AnalyseLinks, FindsASlowPairBetweenHealthyHosts) {
  const LinkReport report = Hosts(5).link(1, 4, 2 * kNormal).noise(0.02, 4).report();
  ASSERT_EQ(report.verdicts.size(), 1u);
  EXPECT_EQ(report.verdicts[0].kind, VerdictKind::kSlowPair);
  EXPECT_EQ(report.verdicts[0].host, 1);
  EXPECT_EQ(report.verdicts[0].other, 4);
}

TEST(AnalyseLinks, CannotBlameOneOfTwoHosts) {
  const LinkReport report = Hosts(2).link(0, 1, 3 * kNormal).report();
  ASSERT_EQ(report.verdicts.size(), 1u);
  EXPECT_EQ(report.verdicts[0].kind, VerdictKind::kSlowPair);
  EXPECT_EQ(report.verdicts[0].host, 0);
}

TEST(AnalyseLinks, FindsGroupsBehindASlowerTrunk) {
  Hosts hosts(6);
  for (int a = 0; a < 3; ++a) {
    for (int b = 3; b < 6; ++b) hosts.link(a, b, 2.5 * kNormal).link(b, a, 2.5 * kNormal);
  }
  const LinkReport report = hosts.noise(0.02, 5).report();
  EXPECT_THAT(report.groups,
              testing::ElementsAre(testing::ElementsAre(0, 1, 2), testing::ElementsAre(3, 4, 5)));
  EXPECT_TRUE(report.verdicts.empty());
}

TEST(AnalyseLinks, FindsGroupsThatOnlyLatencyTellsApart) {
  Hosts hosts(4);
  // Ranks 2 and 3 are near each other but far from the others.
  hosts.far(2, 400e-6).far(3, 400e-6);
  const LinkReport report = hosts.report();
  // Their own latency is far too by this construction, so they are late hosts, not a group.
  EXPECT_EQ(report.verdicts.size(), 2u);
  EXPECT_THAT(report.verdicts, testing::Each(testing::Field(&Verdict::kind, VerdictKind::kLateHost)));
}

TEST(AnalyseLinks, NamesAHostThatAnswersLate) {
  const LinkReport report = Hosts(4).far(1, 300e-6).noise(0.05, 6).report();
  ASSERT_EQ(report.verdicts.size(), 1u);
  EXPECT_EQ(report.verdicts[0].kind, VerdictKind::kLateHost);
  EXPECT_EQ(report.verdicts[0].host, 1);
}

TEST(AnalyseLinks, IsEmptyWithoutSamples) {
  const std::vector<std::string> hosts{"a", "b"};
  const LinkReport report = analyse_links({}, hosts);
  EXPECT_TRUE(report.links.empty());
  EXPECT_TRUE(report.verdicts.empty());
  EXPECT_EQ(report.groups.size(), 1u);
}

TEST(HostScores, AreByTheSlowestDirectionAndHalvedForALateHost) {
  LinkReport report;
  report.hosts = {"a", "b", "c", "d"};
  report.links = {{0, 1, {}, {1e-9}}, {1, 0, {}, {2e-9}}, {0, 2, {}, {4e-9}}, {1, 2, {}, {}}};
  report.verdicts = {{VerdictKind::kLateHost, 1, -1, 2, ""}, {VerdictKind::kSlowHost, 2, -1, 4, ""}};
  // The fastest direction is 1 GB/s; a and c have one of a quarter, b one of half of that; d none.
  EXPECT_THAT(host_scores(report), testing::ElementsAre(testing::Pair("a", 25), testing::Pair("b", 25),
                                                        testing::Pair("c", 25), testing::Pair("d", 100)));
}

TEST(HostOfRank, CountsHostsInRankOrder) {
  const std::vector<std::string> ranks{"b", "a", "b", "c"};
  EXPECT_THAT(host_of_rank(ranks), testing::ElementsAre(0, 1, 0, 2));
  EXPECT_THAT(distinct_hosts(ranks), testing::ElementsAre("b", "a", "c"));
}

}  // namespace
}  // namespace commtune::probes
