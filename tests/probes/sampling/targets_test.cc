#include "probes/sampling/targets.h"

#include <gmock/gmock.h>

namespace commtune::probes {
namespace {

ClusterShape one_rank_each(std::size_t hosts) {
  ClusterShape shape;
  for (std::size_t i = 0; i < hosts; ++i) shape.rank_hosts.push_back(std::to_string(i));
  shape.between = Pair{0, 1};
  return shape;
}

TEST(BytesSent, AreTheRoadsOwn) {
  // Ring of 4: 3 quarters of the message in each of two stages.
  EXPECT_DOUBLE_EQ(bytes_sent(AllReduce{Collective::kRing}, Operation::kAllReduce, 4), 1.5);
  EXPECT_DOUBLE_EQ(bytes_sent(AllReduce{Collective::kRing}, Operation::kReduceScatter, 4), 0.75);
  // One server on a worker's host answers three others with the whole message.
  EXPECT_DOUBLE_EQ(bytes_sent(ParameterServer{1}, Operation::kPushPull, 4), 3);
  // A server on each host: 3 quarters of the own push, 3 answers of a quarter.
  EXPECT_DOUBLE_EQ(bytes_sent(ParameterServer{4}, Operation::kPushPull, 4), 1.5);
}

TEST(ChooseTargets, ExpectAsManyLatenciesAsTheirRoundsHave) {
  ClusterShape shape = one_rank_each(8);
  shape.between_guess.latency = Seconds{1};
  ProbeOptions options;
  options.groups = {9};  // none
  const auto latency = [&](Collective algorithm) {
    Offer offer;
    offer.algorithms = {algorithm};
    const std::vector<Target> targets = choose_targets(options, shape, offer);
    return std::ranges::find(targets, 8, [](const Target& t) { return t.quantity.workers; })->latency.count();
  };
  EXPECT_DOUBLE_EQ(latency(Collective::kRing), 14);
  EXPECT_DOUBLE_EQ(latency(Collective::kHalvingDoubling), 6);
  EXPECT_DOUBLE_EQ(latency(Collective::kDoubleBinaryTree), 6);
  EXPECT_DOUBLE_EQ(latency(Collective::kRecursiveDoubling), 3);
  EXPECT_DOUBLE_EQ(latency(Collective::kOneShot), 1);
}

TEST(SubGroups, AreSmallerThanAllRanks) {
  ProbeOptions options;
  EXPECT_THAT(sub_groups(options, 8), testing::ElementsAre(2, 4));
  EXPECT_THAT(sub_groups(options, 4), testing::ElementsAre(2));
  EXPECT_THAT(sub_groups(options, 3), testing::IsEmpty());
  options.groups = {5, 3, 9, 3};
  EXPECT_THAT(sub_groups(options, 8), testing::ElementsAre(3, 5));
}

TEST(ChooseTargets, AskForLinksAndRoadsAloneAndStreamed) {
  ClusterShape shape = one_rank_each(4);
  Offer offer;
  offer.algorithms = {Collective::kRing};
  offer.staged = {Collective::kRing};
  offer.servers = {ParameterServer{4}};
  const std::vector<Target> targets = choose_targets(ProbeOptions{}, shape, offer);
  const auto count = [&](auto matches) { return std::count_if(targets.begin(), targets.end(), matches); };
  EXPECT_EQ(count([](const Target& t) { return t.quantity.subject == Subject::kMessage; }), 2);
  EXPECT_EQ(count([](const Target& t) { return t.quantity.subject == Subject::kExchange; }), 1);
  // All-reduce, reduce-scatter, all-gather and push-pull of all four; all-reduce and push-pull of two.
  EXPECT_EQ(count([](const Target& t) { return t.quantity.workers == 4; }), 8);
  EXPECT_EQ(count([](const Target& t) { return t.quantity.workers == 2; }), 4);
  // A message has an element for each worker: 16 B for four, 8 B for two.
  EXPECT_EQ(count([](const Target& t) { return t.smallest == Bytes{16}; }), 8);
  EXPECT_EQ(count([](const Target& t) { return t.smallest == Bytes{8}; }), 4);
}

TEST(RoadTargets, AreTheWholeRoadAloneAndStreamed) {
  const Road road{ParameterServer{2, Placement::kColocated, Assignment::kHashed}};
  const std::vector<Target> targets = road_targets(ProbeOptions{}, one_rank_each(4), road, 4);
  ASSERT_EQ(targets.size(), 2u);
  EXPECT_EQ(targets[0].quantity.in_flight, 1);
  EXPECT_EQ(targets[1].quantity.in_flight, kStreaming);
  for (const Target& target : targets) {
    EXPECT_EQ(target.quantity.road, road);
    EXPECT_EQ(target.quantity.operation, Operation::kPushPull);
    EXPECT_EQ(target.quantity.workers, 4);
    EXPECT_GT(target.weight, 0);
  }
}

TEST(ChooseTargets, ExpectWhatTheSlowestOfTheirRanksTakes) {
  ClusterShape shape = one_rank_each(4);
  Offer offer;
  offer.algorithms = {Collective::kRing};
  const std::vector<Target> uniform = choose_targets(ProbeOptions{}, shape, offer);
  for (const std::string& name : shape.rank_hosts) shape.surveyed.hosts.push_back({name, 1});
  shape.surveyed.hosts[3].slowdown = {2, 5, 1};  // not one of the first two
  const std::vector<Target> slow = choose_targets(ProbeOptions{}, shape, offer);
  ASSERT_EQ(slow.size(), uniform.size());
  for (std::size_t i = 0; i < slow.size(); ++i) {
    const bool waits = slow[i].quantity.workers == 4;
    EXPECT_DOUBLE_EQ(slow[i].beta.value / uniform[i].beta.value, waits ? 5 : 1) << describe(slow[i].quantity);
    EXPECT_DOUBLE_EQ(slow[i].latency / uniform[i].latency, waits ? 2 : 1) << describe(slow[i].quantity);
    // Others hide a streamed one's latency.
    const bool shows = waits && slow[i].quantity.in_flight == 1;
    EXPECT_DOUBLE_EQ(slow[i].startup / uniform[i].startup, shows ? 2 : 1) << describe(slow[i].quantity);
  }
}

TEST(Offer, HasTheRingWhateverElseTheExecutorKnows) {
  const Offer all = offer(ProbeOptions{}, {"a", "b", "c", "d"});
  EXPECT_THAT(all.algorithms, testing::Contains(Collective::kRing));
  EXPECT_THAT(all.staged, testing::Contains(Collective::kRing));
  EXPECT_EQ(all.servers.size(), 4u);  // 4, 1 and 2 servers, and 4 in turn
  EXPECT_THAT(all.algorithms, testing::Not(testing::Contains(Collective::kHierarchical)));
  EXPECT_THAT(offer(ProbeOptions{}, {"a", "a", "b", "b"}).algorithms,
              testing::Contains(Collective::kHierarchical));
}

TEST(Offer, HasOneShotWhereItIsNotRecursiveDoubling) {
  EXPECT_THAT(offer(ProbeOptions{}, {"a", "b", "c"}).algorithms, testing::Contains(Collective::kOneShot));
  EXPECT_THAT(offer(ProbeOptions{}, {"a", "b"}).algorithms,
              testing::Not(testing::Contains(Collective::kOneShot)));
}

TEST(ChooseTargets, AskForOneShotWhereItIsMeantToBe) {
  ClusterShape shape;
  shape.rank_hosts = {"a", "b", "c", "d"};
  Offer offer;
  offer.algorithms = {Collective::kOneShot};
  const std::vector<Target> targets = choose_targets(ProbeOptions{}, shape, offer);
  ASSERT_EQ(targets.size(), 2U);  // alone and streamed
  for (const Target& target : targets) {
    EXPECT_LE(target.largest, 256_KiB);
    EXPECT_EQ(target.sent, 3);
  }
}

TEST(Offer, HasServersThatGetOneSumOfAHostWhereThatSparesCards) {
  const auto beside = [](int servers, LocalSum sum, Assignment assignment = Assignment::kEven) {
    return ParameterServer{servers, Placement::kColocated, assignment, sum};
  };
  EXPECT_THAT(offer(ProbeOptions{}, {"a", "a", "b", "b"}).servers,
              testing::UnorderedElementsAre(beside(4, LocalSum::kFirst), beside(1, LocalSum::kFirst),
                                            beside(2, LocalSum::kFirst), beside(4, LocalSum::kNone),
                                            beside(4, LocalSum::kFirst, Assignment::kHashed)));
  EXPECT_THAT(offer(ProbeOptions{}, {"a", "a"}).servers,
              testing::UnorderedElementsAre(beside(2, LocalSum::kNone), beside(1, LocalSum::kNone),
                                            beside(2, LocalSum::kNone, Assignment::kHashed)));
}

TEST(Offer, HasServersThatSpareSlowHosts) {
  const Offer all = offer(ProbeOptions{}, {"a", "b", "c", "d"}, {.first = 2, .count = 3});
  const auto beside = [](int servers, int first) {
    return ParameterServer{servers, Placement::kColocated, Assignment::kEven, LocalSum::kNone, first};
  };
  const ParameterServer in_turn{4, Placement::kColocated, Assignment::kHashed};
  EXPECT_THAT(all.servers, testing::UnorderedElementsAre(beside(4, 0), beside(1, 2), beside(3, 2), in_turn));
}

TEST(ProbeOptions, AreRefusedByName) {
  const auto refusal = [](auto change) -> std::string {
    ProbeOptions options;
    change(options);
    try {
      options.check();
    } catch (const std::exception& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(refusal([](ProbeOptions&) {}), "accepted");
  EXPECT_THAT(refusal([](ProbeOptions& o) { o.budget = Seconds{0}; }), testing::HasSubstr("budget"));
  EXPECT_THAT(refusal([](ProbeOptions& o) { o.first = Bytes{3}; }), testing::HasSubstr("first size = 3 B"));
  EXPECT_THAT(refusal([](ProbeOptions& o) { o.last = Bytes{2}; }), testing::HasSubstr("last size"));
  EXPECT_THAT(refusal([](ProbeOptions& o) { o.factor = 1; }), testing::HasSubstr("factor"));
  EXPECT_THAT(refusal([](ProbeOptions& o) { o.width = 0; }), testing::HasSubstr("width"));
  EXPECT_THAT(refusal([](ProbeOptions& o) { o.sm_share = 0.5; }), testing::HasSubstr("device = cuda"));
  EXPECT_THAT(refusal([](ProbeOptions& o) {
                o.device = DeviceKind::kCuda;
                o.sm_share = 1.5;
              }),
              testing::HasSubstr("sm_share = 1.5"));
  EXPECT_THAT(refusal([](ProbeOptions& o) { o.servers = {ParameterServer{0}}; }),
              testing::HasSubstr("servers"));
}

TEST(DefaultBudget, GrowsWithTheHostsUpToALimit) {
  EXPECT_LE(default_budget(4, 4).count(), 9.5);
  EXPECT_LT(default_budget(8, 8).count(), 17);
  EXPECT_EQ(default_budget(1024, 8192).count(), 60);
}

TEST(DefaultBudget, CountsAFewRanksAsHosts) {
  EXPECT_EQ(default_budget(2, 8), default_budget(4, 4));
  EXPECT_EQ(default_budget(4, 8), default_budget(4, 4));
  EXPECT_LT(default_budget(2, 2), default_budget(2, 4));
}

}  // namespace
}  // namespace commtune::probes
