#include "executor/engine/link_share.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "tests/executor/recording_transport.h"

namespace commtune::tests {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;

/// What `rank` gets, of ranks on these hosts.
std::vector<double> shares_of(const Road& road, int workers, int rank, const std::vector<int>& node) {
  return link_shares(road, HostLayout(peers_of(rank, node), workers), rank);
}

TEST(LinkShare, LeavesARingTheWholeLink) {
  EXPECT_THAT(shares_of(AllReduce{}, 3, 0, {0, 1, 2}), ElementsAre(1, 1, 1));
}

TEST(LinkShare, DividesACardEvenlyAmongColocatedServersOnEveryHost) {
  // Each of 4 hosts sends a push and an answer to each of 3 others: a third of what leaves it.
  const ParameterServer road{4, Placement::kColocated, Assignment::kEven};
  const double third = 1.0 / 3;
  EXPECT_THAT(shares_of(road, 4, 1, {0, 1, 2, 3}),
              ElementsAre(DoubleEq(third), 1, DoubleEq(third), DoubleEq(third)));
}

TEST(LinkShare, DividesTheCardOfTheOnlyServer) {
  // Server 0 takes m from each of workers 1 to 3 and sends m to each: a third of its card in both directions.
  const ParameterServer road{1, Placement::kColocated, Assignment::kEven};
  const double third = 1.0 / 3;
  EXPECT_THAT(shares_of(road, 4, 0, {0, 1, 2, 3}),
              ElementsAre(1, DoubleEq(third), DoubleEq(third), DoubleEq(third)));
  EXPECT_THAT(shares_of(road, 4, 2, {0, 1, 2, 3}), ElementsAre(DoubleEq(third), 1, 1, 1));
}

TEST(LinkShare, GivesFlowsBetweenServersMoreWhereThereAreFewer) {
  // 2 servers of 3: server 0 sends to server 1 a push and an answer of m/2 each, to worker 2 an answer alone.
  const ParameterServer road{2, Placement::kColocated, Assignment::kEven};
  EXPECT_THAT(shares_of(road, 3, 0, {0, 1, 2}), ElementsAre(1, DoubleEq(2.0 / 3), DoubleEq(1.0 / 3)));
}

TEST(LinkShare, CountsAllWorkersThatReachADedicatedServer) {
  // 3 workers, 1 server: 3 m reach it, m leaves a worker.
  const ParameterServer road{1, Placement::kDedicated, Assignment::kEven};
  EXPECT_THAT(shares_of(road, 3, 1, {0, 1, 2, 3}), ElementsAre(1, 1, 1, DoubleEq(1.0 / 3)));
  // 1 worker, 2 servers: its card is the busier one.
  const ParameterServer two{2, Placement::kDedicated, Assignment::kEven};
  EXPECT_THAT(shares_of(two, 1, 0, {0, 1, 2}), ElementsAre(1, DoubleEq(0.5), DoubleEq(0.5)));
}

TEST(LinkShare, CountsTheRanksOfAHostTogether) {
  // 2 hosts with 2 ranks, a server each: 4 pairs cross, each with a push and an answer of m/4; what stays on
  // the host has no share to take.
  const ParameterServer road{4, Placement::kColocated, Assignment::kEven};
  EXPECT_THAT(shares_of(road, 4, 0, {0, 0, 1, 1}), ElementsAre(1, 1, DoubleEq(0.25), DoubleEq(0.25)));
}

TEST(LinkShare, CountsWhatAHostPushesAfterItsLocalSumOnce) {
  // 2 hosts with 2 ranks, one server on rank 0: ranks 0 and 2 push one half, 1 and 3 the other. Of host 1's
  // m, each of its ranks sends half; server 0 sends half to either.
  ParameterServer road{1, Placement::kColocated, Assignment::kEven};
  road.local_sum = LocalSum::kFirst;
  EXPECT_THAT(shares_of(road, 4, 0, {0, 0, 1, 1}), ElementsAre(1, 1, DoubleEq(0.5), DoubleEq(0.5)));
  EXPECT_THAT(shares_of(road, 4, 3, {0, 0, 1, 1}), ElementsAre(DoubleEq(0.5), 1, 1, 1));
}

/// 64 hosts of 8 workers, each with a server: 8 * 504 pushes and as many answers leave a host, two of them
/// from one rank to another.
TEST(LinkShare, OfFiveHundredRanksIsKnownToEachOfThem) {
  std::vector<int> node(512);
  for (std::size_t rank = 0; rank < node.size(); ++rank) node[rank] = static_cast<int>(rank / 8);
  const HostLayout hosts(peers_of(0, node), 512);
  const ParameterServer road{512, Placement::kColocated, Assignment::kEven};
  for (int rank = 0; rank < 512; ++rank) {
    const std::vector<double> shares = link_shares(road, hosts, rank);
    ASSERT_EQ(shares.size(), 512U);
    ASSERT_EQ(std::count(shares.begin(), shares.end(), 1.0), 8) << rank;
    ASSERT_EQ(std::count(shares.begin(), shares.end(), 2.0 / (2 * 8 * 504)), 504) << rank;
  }
}

}  // namespace
}  // namespace commtune::tests
