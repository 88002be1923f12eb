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
  EXPECT_EQ(chunk(whole, 10, 0).length, 9U);
  EXPECT_EQ(chunk(whole, 10, 2).offset, 118U);
  EXPECT_EQ(chunk(whole, 10, 2).length, 7U);
  EXPECT_EQ(chunks(0, 10), 0U);
}

/// 16 KiB in chunks of at most 15: two of 8, not one of 15 and another transfer for the last.
TEST(Chunk, IsAboutAsLongAsTheOthers) {
  const Range whole{0, 16 << 10};
  ASSERT_EQ(chunks(whole.length, 15 << 10), 2U);
  EXPECT_EQ(chunk(whole, 15 << 10, 0).length, 8U << 10);
  EXPECT_EQ(chunk(whole, 15 << 10, 1).length, 8U << 10);
}

TEST(Chunk, IsWholeElements) {
  const Range whole{4, 44};
  for (std::size_t i = 0; i < chunks(whole.length, 12); ++i) {
    EXPECT_EQ(chunk(whole, 12, i).length % 4, 0U) << i;
    EXPECT_LE(chunk(whole, 12, i).length, 12U) << i;
  }
  EXPECT_EQ(chunk(whole, 12, 3).end(), whole.end());
}

TEST(RoadSettings, ChunksAreWholeElementsBetweenTheirLimits) {
  RoadSettings settings;
  settings.chunk = Bytes{1000};
  settings.uncut = Bytes{100};
  settings.cuts = 4;
  EXPECT_EQ(settings.chunk_for(40, 2), 100U);    // a segment of 20 B is not cut
  EXPECT_EQ(settings.chunk_for(4000, 2), 500U);  // 2000 B in 4
  EXPECT_EQ(settings.chunk_for(1 << 20, 2), 1000U);
  settings.chunk = Bytes{1002};
  EXPECT_EQ(settings.chunk_for(1 << 20, 2), 1000U);  // whole float32
}

/// Segments of 2004 B, 501 elements: the quarter of 125 would leave one element for a fifth chunk.
TEST(RoadSettings, NoElementIsLeftForOneChunkMore) {
  RoadSettings settings;
  settings.chunk = Bytes{1000};
  settings.uncut = Bytes{100};
  EXPECT_EQ(settings.chunk_for(4008, 2), 504U);
  EXPECT_EQ(chunks(2004, settings.chunk_for(4008, 2)), 4U);
  EXPECT_EQ(chunks(2004, settings.chunk_for(4004, 2)), 4U);  // one segment is an element shorter
}

}  // namespace
}  // namespace commtune
