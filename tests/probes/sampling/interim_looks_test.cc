#include "probes/sampling/interim_looks.h"

#include <gtest/gtest.h>

namespace commtune::probes {
namespace {

Visit visit(bool of_first_sizes) {
  Visit next;
  next.of_first_sizes = of_first_sizes;
  return next;
}

Advice advice(const std::string& choice, bool certain) { return {{}, choice, certain}; }

TEST(InterimLooks, BeginWhenRoadsHaveTheirFirstSizes) {
  InterimLooks looks(Seconds{10});
  EXPECT_FALSE(looks.due(visit(true), Seconds{8}));
  EXPECT_TRUE(looks.due(visit(false), Seconds{6}));
  EXPECT_FALSE(looks.due(visit(false), Seconds{6}));
}

// 4 s are left at the first look: then one more each second, of which the last is 1 s before the end.
TEST(InterimLooks, ComeWhenAnotherPartIsSpent) {
  InterimLooks looks(Seconds{10});
  int seen = 0;
  for (double left = 4; left > 0; left -= 0.25) {
    if (looks.due(visit(false), Seconds{left})) ++seen;
    EXPECT_EQ(seen, std::min(1 + static_cast<int>(4 - left), InterimLooks::kMost)) << left;
  }
  EXPECT_EQ(looks.looks(), InterimLooks::kMost);
}

TEST(InterimLooks, TakeASmallPartOfTheBudget) {
  EXPECT_NEAR(InterimLooks(Seconds{10}).limit().count() * InterimLooks::kMost, 10 * InterimLooks::kShare,
              1e-9);
  EXPECT_EQ(InterimLooks(Seconds{86'400}).limit(), InterimLooks::kLongest);
}

// 4 % of 10 s: two looks of 0.15 s, with which a third would take more.
TEST(InterimLooks, EndWhereTheyTakeTooLong) {
  InterimLooks looks(Seconds{10});
  for (double left = 5; left > 0; left -= 0.25) {
    if (looks.due(visit(false), Seconds{left})) looks.add_time(Seconds{0.15});
  }
  EXPECT_EQ(looks.looks(), 2);
}

TEST(InterimLooks, SettleOnTheSameCertainChoice) {
  InterimLooks looks(Seconds{10});
  EXPECT_FALSE(looks.is_settled_by(advice("ring", true)));
  EXPECT_FALSE(looks.is_settled_by(advice("ring", true)));
  EXPECT_TRUE(looks.is_settled_by(advice("ring", true)));
}

TEST(InterimLooks, BeginAnewWithAnotherChoiceOrDoubt) {
  InterimLooks looks(Seconds{10});
  EXPECT_FALSE(looks.is_settled_by(advice("ring", true)));
  EXPECT_FALSE(looks.is_settled_by(advice("ring", true)));
  EXPECT_FALSE(looks.is_settled_by(advice("servers", true)));
  EXPECT_FALSE(looks.is_settled_by(advice("servers", true)));
  EXPECT_FALSE(looks.is_settled_by(advice("servers", false)));
  EXPECT_FALSE(looks.is_settled_by(advice("servers", true)));
  EXPECT_FALSE(looks.is_settled_by(advice("servers", true)));
  EXPECT_TRUE(looks.is_settled_by(advice("servers", true)));
}

}  // namespace
}  // namespace commtune::probes
