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
  ASSERT_TRUE(closed.message);
  EXPECT_EQ(closed.message->receive, 8U);
  EXPECT_EQ(closed.message->message.size, 200U);
  EXPECT_EQ(closed.message->region, 80);
  EXPECT_EQ(grants.open_count(), 1U);
  EXPECT_TRUE(grants.close(first).was_granted);
  EXPECT_TRUE(grants.empty());
}

TEST(Grants, AMessageOfSeveralConnectionsEndsWithTheLast) {
  Grants<int> grants;
  const Immediate immediate = grants.open({7, {}, 0, 0b101});
  const auto first = grants.close(immediate, 2);
  EXPECT_TRUE(first.was_granted);
  EXPECT_FALSE(first.message);
  EXPECT_FALSE(grants.close(immediate, 2).was_granted) << "twice on one connection";
  EXPECT_FALSE(grants.close(immediate, 1).was_granted) << "it was not granted on this one";
  EXPECT_TRUE(grants.close(immediate, 0).message);
}

TEST(Grants, ALateOrRepeatedImmediateEndsNothing) {
  Grants<int> grants;
  const Immediate first = grants.open({7, {}, 0});
  EXPECT_TRUE(grants.close(first).was_granted);
  EXPECT_FALSE(grants.close(first).was_granted);
  const Immediate again = grants.open({8, {}, 0});
  EXPECT_EQ(again >> 16, first >> 16) << "the slot is used again";
  EXPECT_FALSE(grants.close(first).was_granted) << "its sequence is another";
  EXPECT_FALSE(grants.close(again + (1U << 16)).was_granted) << "there is no such slot";
  EXPECT_TRUE(grants.close(again).message);
}

TEST(Grants, SequencesStartAgainAfterTheLast) {
  Grants<int> grants;
  for (int i = 0; i < 70'000; ++i) ASSERT_TRUE(grants.close(grants.open({1, {}, 0})).message);
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
