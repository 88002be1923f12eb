#include "executor/transport/matching/transfers.h"

#include <gtest/gtest.h>

namespace commtune::matching {
namespace {

Tag reduce(std::uint32_t number) { return make_tag(TagSpace::kReduce, number); }

/// Receives with these tags, queued in this order.
std::vector<TransferId> queued(Transfers& transfers, Queue& queue, const std::vector<Tag>& tags) {
  std::vector<TransferId> ids;
  ids.reserve(tags.size());
  for (const Tag tag : tags) {
    ids.push_back(transfers.open(nullptr, 8, tag));
    transfers.append(queue, ids.back());
  }
  return ids;
}

TEST(Transfers, AreTakenByTagFromAnyPlaceOfAQueue) {
  Transfers transfers;
  Queue queue;
  const auto ids = queued(transfers, queue, {reduce(1), reduce(2), reduce(3), reduce(2)});
  EXPECT_EQ(transfers.take(queue, reduce(9)), kNoTransfer);
  EXPECT_EQ(transfers.take(queue, reduce(2)), ids[1]);
  EXPECT_EQ(transfers.take(queue, reduce(2)), ids[3]);
  EXPECT_EQ(transfers.take(queue, reduce(1)), ids[0]);
  const TransferId behind = transfers.open(nullptr, 8, reduce(4));
  transfers.append(queue, behind);
  EXPECT_EQ(transfers.pop_front(queue), ids[2]);
  EXPECT_EQ(transfers.pop_front(queue), behind);
  EXPECT_TRUE(queue.empty());
}

TEST(Transfers, OfAnyNumberFitTheirChannelAlone) {
  EXPECT_TRUE(fits(reduce(kAnyNumber), reduce(7)));
  EXPECT_FALSE(fits(reduce(kAnyNumber), make_tag(TagSpace::kDistribute, 7)));
  EXPECT_FALSE(fits(reduce(6), reduce(7)));
}

TEST(Transfers, AreReportedOnceAndUsedAgainOnlyAfterwards) {
  Transfers transfers;
  const TransferId first = transfers.open(nullptr, 8, reduce(1));
  transfers.complete(first, {4, reduce(1)});
  EXPECT_TRUE(transfers.any_completed());
  const auto reported = transfers.report();
  ASSERT_EQ(reported.size(), 1U);
  EXPECT_EQ(reported[0].transfer, first);
  EXPECT_EQ(reported[0].bytes, 4U);
  EXPECT_FALSE(transfers.any_completed());
  EXPECT_NE(transfers.open(nullptr, 8, reduce(2)), first);
  transfers.release_reported();
  EXPECT_EQ(transfers.open(nullptr, 8, reduce(3)), first);
  EXPECT_TRUE(transfers.report().empty());
}

}  // namespace
}  // namespace commtune::matching
