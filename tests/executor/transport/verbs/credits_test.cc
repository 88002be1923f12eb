#include "executor/transport/verbs/credits.h"

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <random>

namespace commtune::verbs {
namespace {

TEST(Credits, OneIsSetAsideForGivingBack) {
  Credits credits(4);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(credits.may_send());
    credits.spend();
  }
  EXPECT_FALSE(credits.may_send());
  EXPECT_TRUE(credits.may_give_back());
}

TEST(Credits, HalfOfThemAreGivenBackByAMessageOfTheirOwn) {
  Credits credits(8);
  for (int i = 0; i < 3; ++i) credits.owe();
  EXPECT_FALSE(credits.should_give_back());
  credits.owe();
  EXPECT_TRUE(credits.should_give_back());
  EXPECT_EQ(credits.take_owed(), 4U);
  EXPECT_EQ(credits.take_owed(), 0U);
}

TEST(Credits, MoreThanWereSpentAreRefused) {
  Credits credits(4);
  credits.spend();
  EXPECT_FALSE(credits.add(2));
  EXPECT_TRUE(credits.add(1));
  EXPECT_EQ(credits.left(), 4U);
}

/// One end of a connection with as many receives as credits; what it sends takes a receive at the other.
struct End {
  explicit End(std::uint32_t receives) : credits(receives), posted(receives) {}
  Credits credits;
  std::uint32_t posted;               // receives
  std::deque<std::uint32_t> arrived;  // the credits that each frame gives back
  int to_send = 0;                    // messages
};

TEST(Credits, NoReceiveQueueRunsDryAndNobodyWaitsForEver) {
  // Both sides send as much as they may, and take what has come in any order and at any time.
  std::mt19937_64 random(1);
  for (const std::uint32_t receives : {4U, 5U, 8U, 64U}) {
    for (int round = 0; round < 50; ++round) {
      std::array<End, 2> ends{End(receives), End(receives)};
      ends[0].to_send = static_cast<int>(random() % 500);
      ends[1].to_send = round % 3 == 0 ? 0 : static_cast<int>(random() % 500);
      const auto send_frame = [&](std::size_t side) {
        End& other = ends[1 - side];
        ends[side].credits.spend();
        ASSERT_GT(other.posted, 0U) << "a receive queue ran dry";
        --other.posted;
        other.arrived.push_back(ends[side].credits.take_owed());
      };
      const auto step = [&](std::size_t side, std::uint64_t most) {
        End& end = ends[side];
        for (; most > 0 && !end.arrived.empty(); --most) {
          ASSERT_TRUE(end.credits.add(end.arrived.front()));
          end.arrived.pop_front();
          ++end.posted;
          end.credits.owe();
        }
        for (; end.to_send > 0 && end.credits.may_send(); --end.to_send) send_frame(side);
        if (end.credits.should_give_back() && end.credits.may_give_back()) send_frame(side);
      };
      for (int steps = 0; ends[0].to_send > 0 || ends[1].to_send > 0; ++steps) {
        ASSERT_LT(steps, 100'000) << "both wait: " << receives << " receives";
        step(random() % 2, random() % (receives + 1));
      }
    }
  }
}

}  // namespace
}  // namespace commtune::verbs
