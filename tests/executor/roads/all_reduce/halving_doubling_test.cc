#include "executor/roads/all_reduce/halving_doubling.h"

#include <gtest/gtest.h>

#include <chrono>
#include <latch>
#include <vector>

#include "executor/roads/road.h"
#include "tests/executor/ranks.h"

namespace commtune::tests {
namespace {

constexpr std::size_t kChunk = 4096;
constexpr std::size_t kAllBytes = 64 * kChunk;

/// What rank 0 has sent of a halving while rank 3 has not begun.
std::uint64_t sent_before_the_last_comes(RoadSettings settings, std::vector<std::vector<float>>& data,
                                         std::uint64_t& in_the_end) {
  std::latch may_start(1);
  std::uint64_t before = 0;
  on_ranks(4, [&](Transport& transport) {
    const auto rank = static_cast<std::size_t>(transport.peers().rank);
    Communicator communicator(transport);
    communicator.set_urgency({{0}, {0}});
    const HostLayout hosts(communicator.peers(), settings.workers);
    Scratch scratch(settings.chunk.count);
    if (rank == 3) may_start.wait();
    Task task = halving_reduce_scatter(
        {communicator, scratch, settings, hosts, 0, std::as_writable_bytes(std::span(data[rank]))});
    task.start();
    if (rank == 0) {
      const auto until = Clock::now() + std::chrono::milliseconds(200);
      while (Clock::now() < until) communicator.progress(until);
      before = communicator.sent(TagSpace::kReduce, 0);
      may_start.count_down();
    }
    const auto late = Clock::now() + std::chrono::seconds(200);
    while (!task.done() && Clock::now() < late) communicator.progress(late);
    task.result();
    if (rank == 0) in_the_end = communicator.sent(TagSpace::kReduce, 0);
  });
  return before;
}

RoadSettings four_workers(Bytes chunk) {
  RoadSettings settings;
  settings.workers = 4;
  settings.result = Result::kSum;
  settings.chunk = chunk;
  return settings;
}

/// Rank 3 comes late, so rank 1 is still in its first step, with rank 3, when rank 0 has ended its own, with
/// rank 2: half of the message. Of the quarter that rank 0 then has for rank 1 only the beginning may go.
TEST(HalvingDoubling, SendsOnlyTheBeginningToAPeerThatIsInAnEarlierStep) {
  std::vector<std::vector<float>> data(4, std::vector<float>(kAllBytes / sizeof(float), 1.0F));
  std::uint64_t in_the_end = 0;
  const std::uint64_t before = sent_before_the_last_comes(four_workers(Bytes{kChunk}), data, in_the_end);
  EXPECT_LE(before, kAllBytes / 2 + 2 * kChunk);
  EXPECT_EQ(in_the_end, kAllBytes / 2 + kAllBytes / 4);
  for (std::size_t rank = 0; rank < 4; ++rank) {
    const std::size_t own = rank * data[rank].size() / 4;
    EXPECT_EQ(data[rank][own], 4.0F) << "rank " << rank;
  }
}

/// Of short chunks that is as much as one of the longest: two of them would not keep a link busy until the
/// first of the return is there.
TEST(HalvingDoubling, SendsAsManyBytesOfShortChunksAsOfALongOne) {
  constexpr std::size_t kLongest = 8 * kChunk, kMessage = 128 * kChunk;
  RoadSettings settings = four_workers(Bytes{kLongest});
  settings.uncut = Bytes{kChunk};
  settings.cuts = 32;  // a step's chunks have the shortest size
  std::vector<std::vector<float>> data(4, std::vector<float>(kMessage / sizeof(float), 1.0F));
  std::uint64_t in_the_end = 0;
  const std::uint64_t before = sent_before_the_last_comes(settings, data, in_the_end);
  EXPECT_EQ(before, kMessage / 2 + kLongest);
  EXPECT_EQ(in_the_end, kMessage / 2 + kMessage / 4);
}

}  // namespace
}  // namespace commtune::tests
