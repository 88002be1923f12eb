#include "executor/transport/verbs/grants.h"

#include <gtest/gtest.h>

#include "executor/transport/verbs/chunk_chain.h"

namespace commtune::verbs {
namespace {

TEST(Grants, AnImmediateEndsWhatItWasGivenFor) {
  Grants<int> grants;
  const Immediate first = grants.open({7, {100, 1}, 70});
  const Immediate second = grants.open({8, {200, 2}, 80});
  EXPECT_NE(first, second);
  const auto closed = grants.close(second);
  ASSERT_TRUE(closed);
  EXPECT_EQ(closed->receive, 8U);
  EXPECT_EQ(closed->message.size, 200U);
  EXPECT_EQ(closed->region, 80);
  EXPECT_FALSE(grants.empty());
  EXPECT_TRUE(grants.close(first));
  EXPECT_TRUE(grants.empty());
}

TEST(Grants, ALateOrRepeatedImmediateEndsNothing) {
  Grants<int> grants;
  const Immediate first = grants.open({7, {}, 0});
  EXPECT_TRUE(grants.close(first));
  EXPECT_FALSE(grants.close(first));
  const Immediate again = grants.open({8, {}, 0});
  EXPECT_EQ(again >> 16, first >> 16) << "the slot is used again";
  EXPECT_FALSE(grants.close(first)) << "its sequence is another";
  EXPECT_FALSE(grants.close(again + (1U << 16))) << "there is no such slot";
  EXPECT_TRUE(grants.close(again));
}

TEST(Grants, SequencesStartAgainAfterTheLast) {
  Grants<int> grants;
  for (int i = 0; i < 70'000; ++i) ASSERT_TRUE(grants.close(grants.open({1, {}, 0})));
}

TEST(ChunkChain, CoversTheMessageOnceAndEndsWithItsLastByte) {
  // 10 B in parts of 4: 0 to 4, 4 to 8, 8 to 10.
  ChunkChain chain(10, 4);
  std::vector<std::uint64_t> offsets, lengths;
  for (; !chain.is_done(); chain.advance()) {
    const ChunkChain::Write write = chain.next();
    offsets.push_back(write.offset);
    lengths.push_back(write.length);
    EXPECT_EQ(write.last, write.offset + write.length == 10);
  }
  EXPECT_EQ(offsets, (std::vector<std::uint64_t>{0, 4, 8}));
  EXPECT_EQ(lengths, (std::vector<std::uint64_t>{4, 4, 2}));
}

TEST(ChunkChain, AMessageOfOnePartIsItsOwnLast) {
  ChunkChain chain(4, 4);
  EXPECT_TRUE(chain.next().last);
  chain.advance();
  EXPECT_TRUE(chain.is_done());
}

}  // namespace
}  // namespace commtune::verbs
