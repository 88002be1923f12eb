#include "executor/roads/parameter_server/local_sum.h"

#include <gmock/gmock.h>

#include <cstring>
#include <vector>

#include "executor/roads/parameter_server/pushers.h"
#include "tests/executor/ranks.h"

namespace commtune::tests {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::size_t kElements = 10;
constexpr std::size_t kBytes = 4 * kElements;

Peers peers_on(std::vector<int> node) {
  Peers peers;
  peers.hosts.resize(node.size());
  peers.node = std::move(node);
  return peers;
}

ParameterServer road_of(LocalSum local_sum) {
  return {1, Placement::kDedicated, Assignment::kEven, local_sum};
}

TEST(Pushers, AreAllWorkersWithoutALocalSum) {
  const Pushers pushers(road_of(LocalSum::kNone), {peers_on({0, 0, 1, 1, 2}), 4});
  EXPECT_EQ(pushers.parts(), 1);
  EXPECT_THAT(pushers.of(0), ElementsAre(0, 1, 2, 3));
}

TEST(Pushers, OwnAsManyPartsAsTheSmallestHostHasWorkers) {
  // Hosts of 3 and 2 workers, the ranks dealt in turn; rank 5 is a server beside them.
  const Pushers pushers(road_of(LocalSum::kFirst), {peers_on({0, 1, 0, 1, 0, 1}), 5});
  EXPECT_EQ(pushers.parts(), 2);
  EXPECT_THAT(pushers.of(0), ElementsAre(0, 1));
  EXPECT_THAT(pushers.of(1), ElementsAre(2, 3));
  EXPECT_EQ(pushers.part_of(3), 1);
  EXPECT_EQ(pushers.part_of(4), -1);
}

/// One message of 1, 2, 3, ... (times the rank + 1) through one server behind 2 hosts of 2 workers.
struct Exchange {
  std::vector<std::uint64_t> pushed = std::vector<std::uint64_t>(4);
  std::vector<std::vector<float>> result = std::vector<std::vector<float>>(4);
};

Exchange exchange(LocalSum local_sum) {
  Exchange seen;
  const ParameterServer road = road_of(local_sum);
  RoadSettings settings;
  settings.workers = 4;
  settings.result = Result::kSum;
  on_ranks(5,
           [&](Transport& transport) {
             Communicator communicator(transport);
             communicator.set_urgency({{0}, {0}});
             const HostLayout hosts(communicator.peers(), settings.workers);
             Scratch scratch(settings.chunk.count);
             const Deadline deadline = Clock::now() + std::chrono::seconds(10);
             if (communicator.rank() == 4) {
               Server server(communicator, scratch, settings, hosts, road, {kBytes});
               server.start();
               while (!server.finished()) communicator.progress(deadline);
               return;
             }
             const auto rank = static_cast<std::size_t>(communicator.rank());
             std::vector<float> data;
             for (std::size_t i = 0; i < kElements; ++i)
               data.push_back(static_cast<float>((i + 1) * (rank + 1)));
             const RoadMessage message{communicator, scratch, settings,
                                       hosts,        0,       std::as_writable_bytes(std::span(data))};
             communicator.run(push_pull(message, road, nullptr), deadline);
             seen.pushed[rank] = communicator.sent(TagSpace::kReduce, 0);
             seen.result[rank] = data;
             communicator.run(say_goodbye(communicator, settings, road), deadline);
           },
           {.ranks_per_host = 2});
  return seen;
}

TEST(LocalSum, PushesEveryByteOfAHostOnce) {
  // Each worker pushes its half of the host's sum, not the whole of its own gradients.
  const Exchange first = exchange(LocalSum::kFirst);
  EXPECT_THAT(first.pushed, Each(kBytes / 2));
  const Exchange each = exchange(LocalSum::kNone);
  EXPECT_THAT(each.pushed, Each(kBytes));
  // 1 + 2 + 3 + 4 = 10 times the element's number, on every rank.
  std::vector<float> expected;
  for (std::size_t i = 0; i < kElements; ++i) expected.push_back(10 * static_cast<float>(i + 1));
  EXPECT_THAT(first.result, Each(expected));
  EXPECT_THAT(each.result, Each(expected));
}

}  // namespace
}  // namespace commtune::tests
