#include "executor/roads/road.h"

#include <gtest/gtest.h>

namespace commtune {
namespace {

TEST(Segment, CutsEvenlyOnElementBoundaries) {
  // 10 elements of 4 B over 4 ranks: 3, 3, 2, 2.
  EXPECT_EQ(segment(40, 4, 4, 0).length, 12U);
  EXPECT_EQ(segment(40, 4, 4, 1).offset, 12U);
  EXPECT_EQ(segment(40, 4, 4, 3).offset, 32U);
  EXPECT_EQ(segment(40, 4, 4, 3).end(), 40U);
  // Fewer elements than ranks: the last ones get nothing.
  EXPECT_EQ(segment(4, 4, 3, 0).length, 4U);
  EXPECT_EQ(segment(4, 4, 3, 2).length, 0U);
}

TEST(Chunk, CoversASegmentOnce) {
  const Range whole{100, 25};
  ASSERT_EQ(chunks(whole.length, 10), 3U);
  EXPECT_EQ(chunk(whole, 10, 0).offset, 100U);
  EXPECT_EQ(chunk(whole, 10, 2).offset, 120U);
  EXPECT_EQ(chunk(whole, 10, 2).length, 5U);
  EXPECT_EQ(chunks(0, 10), 0U);
}

TEST(RoadSettings, ChunksAreWholeElementsBetweenTheirLimits) {
  RoadSettings settings;
  settings.chunk = Bytes{1000};
  settings.least_chunk = Bytes{100};
  settings.cuts = 4;
  EXPECT_EQ(settings.chunk_for(40, 2), 100U);    // a segment of 20 B is not cut
  EXPECT_EQ(settings.chunk_for(4000, 2), 500U);  // 2000 B in 4
  EXPECT_EQ(settings.chunk_for(1 << 20, 2), 1000U);
  settings.chunk = Bytes{1002};
  EXPECT_EQ(settings.chunk_for(1 << 20, 2), 1000U);  // whole float32
}

TEST(Scratch, KeepsBlocksForTheNextUser) {
  Scratch scratch(64);
  const std::byte* first = nullptr;
  {
    const Scratch::Block block = scratch.take();
    first = block.bytes(1).data();
  }
  const Scratch::Block again = scratch.take();
  EXPECT_EQ(again.bytes(1).data(), first);
  EXPECT_EQ(scratch.allocated(), 64U);
}

}  // namespace
}  // namespace commtune
