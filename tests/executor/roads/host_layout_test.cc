#include "executor/roads/host_layout.h"

#include <gmock/gmock.h>

#include <vector>

#include "executor/roads/all_reduce/inside_host.h"
#include "tests/executor/recording_transport.h"

namespace commtune::tests {
namespace {

using ::testing::ElementsAre;

TEST(HostLayout, NumbersHostsByTheirFirstRank) {
  // Workers 0 to 3 on two hosts, a dedicated server on a third.
  const HostLayout hosts(peers_of(0, {7, 3, 7, 7, 9}), 4);
  EXPECT_EQ(hosts.ranks(), 5);
  EXPECT_EQ(hosts.workers(), 4);
  EXPECT_EQ(hosts.worker_hosts(), 2);
  EXPECT_EQ(hosts.all_hosts(), 3);
  EXPECT_THAT(hosts.workers_of(0), ElementsAre(0, 2, 3));
  EXPECT_THAT(hosts.workers_of(1), ElementsAre(1));
  EXPECT_EQ(hosts.host_of(3), 0);
  EXPECT_EQ(hosts.host_of(4), 2);
  EXPECT_EQ(hosts.local(3), 2);
  EXPECT_EQ(hosts.smallest(), 1);
}

TEST(HostLayout, CountsNoServerBesideTheWorkersOfItsHost) {
  const HostLayout hosts(peers_of(0, {0, 1, 0, 1}), 2);
  EXPECT_THAT(hosts.workers_of(0), ElementsAre(0));
  EXPECT_EQ(hosts.host_of(2), 0);
  EXPECT_EQ(hosts.all_hosts(), 2);
}

constexpr int kHosts = 64, kSlots = 8, kRanks = kHosts * kSlots;

/// 512 workers, dealt to 64 hosts in turn: worker r is the (r / 64)-th of host r mod 64.
Peers many(int rank) {
  std::vector<int> node;
  node.reserve(kRanks);
  for (int each = 0; each < kRanks; ++each) node.push_back(each % kHosts);
  return peers_of(rank, node);
}

TEST(HostLayout, OfFiveHundredRanksIsLookedUpAfterThePeersAreGone) {
  // What it answers with is its own, filled in once: nothing is left of the list of ranks to walk.
  const HostLayout hosts(many(0), kRanks);
  EXPECT_EQ(hosts.worker_hosts(), kHosts);
  EXPECT_EQ(hosts.smallest(), kSlots);
  for (int rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(hosts.host_of(rank), rank % kHosts);
    EXPECT_EQ(hosts.local(rank), rank / kHosts);
    EXPECT_EQ(hosts.workers_of(rank % kHosts)[static_cast<std::size_t>(rank / kHosts)], rank);
  }
}

TEST(HostPlace, OfFiveHundredRanksSeesItsHostAndTwoNeighbours) {
  const HostLayout hosts(many(0), kRanks);
  RoadSettings settings;
  settings.workers = kRanks;
  Scratch scratch(settings.chunk.count);
  std::vector<std::byte> data(std::size_t{4} * kRanks);
  for (const int rank : {0, 63, 64, 300, 511}) {
    RecordingTransport transport(many(rank));
    Communicator communicator(transport);
    const HostPlace place(RoadMessage{communicator, scratch, settings, hosts, 0, data});
    EXPECT_EQ(place.in_host.size(), std::size_t{kSlots});
    EXPECT_EQ(place.local, rank / kHosts);
    const Circle circle = place.circle();
    const int host = rank % kHosts, row = rank - host;
    EXPECT_EQ(circle.size, kHosts);
    EXPECT_EQ(circle.own, host);
    EXPECT_EQ(circle.left, row + (host + kHosts - 1) % kHosts);
    EXPECT_EQ(circle.right, row + (host + 1) % kHosts);
  }
}

TEST(HostPlace, OfFiveHundredRanksSpeaksToItsOwnHostOnly) {
  // Of its 7 neighbours inside the host a rank first takes one's part; it has sent all 7 theirs by then.
  const HostLayout hosts(many(0), kRanks);
  RoadSettings settings;
  settings.workers = kRanks;
  Scratch scratch(settings.chunk.count);
  std::vector<std::byte> data(std::size_t{4} * kRanks);
  RecordingTransport transport(many(70));
  Communicator communicator(transport);
  const RoadMessage message{communicator, scratch, settings, hosts, 0, data};
  Task task = reduce_inside(message, HostPlace(message), make_tag(TagSpace::kReduce, 0));
  task.start();
  EXPECT_EQ(transport.started().size(), std::size_t{kSlots});
  for (const auto& started : transport.started()) EXPECT_EQ(started.peer % kHosts, 70 % kHosts);
}

}  // namespace
}  // namespace commtune::tests
