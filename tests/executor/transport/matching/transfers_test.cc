#include "executor/transport/matching/transfers.h"

#include <gtest/gtest.h>

#include <vector>

namespace commtune::matching {
namespace {

Tag reduce_tag(std::uint32_t number) { return make_tag(TagSpace::kReduce, number); }

TEST(Transfers, LeaveTheirQueueFromAnyPlace) {
  Transfers transfers;
  Queue queue;
  std::vector<TransferId> ids;
  for (std::uint32_t number = 0; number < 4; ++number) {
    ids.push_back(transfers.open(nullptr, 8, reduce_tag(number)));
    transfers.append(queue, ids.back());
  }
  EXPECT_EQ(transfers.unlink_after(queue, ids[0]), ids[1]);
  EXPECT_EQ(transfers.unlink_after(queue, ids[2]), ids[3]);
  const TransferId behind = transfers.open(nullptr, 8, reduce_tag(4));
  transfers.append(queue, behind);
  EXPECT_EQ(transfers.pop_front(queue), ids[0]);
  EXPECT_EQ(transfers.pop_front(queue), ids[2]);
  EXPECT_EQ(transfers.pop_front(queue), behind);
  EXPECT_TRUE(queue.empty());
  transfers.append(queue, ids[1]);
  EXPECT_EQ(transfers.pop_front(queue), ids[1]);
}

TEST(Transfers, AreReportedOnceAndUsedAgainOnlyAfterwards) {
  Transfers transfers;
  const TransferId first = transfers.open(nullptr, 8, reduce_tag(1));
  transfers.complete(first, {4, reduce_tag(1)});
  EXPECT_TRUE(transfers.any_completed());
  const auto reported = transfers.report();
  ASSERT_EQ(reported.size(), 1U);
  EXPECT_EQ(reported[0].transfer, first);
  EXPECT_EQ(reported[0].bytes, 4U);
  EXPECT_FALSE(transfers.any_completed());
  EXPECT_NE(transfers.open(nullptr, 8, reduce_tag(2)), first);
  transfers.release_reported();
  EXPECT_EQ(transfers.open(nullptr, 8, reduce_tag(3)), first);
  EXPECT_TRUE(transfers.report().empty());
}

}  // namespace
}  // namespace commtune::matching
