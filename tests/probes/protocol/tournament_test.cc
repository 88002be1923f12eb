#include "probes/protocol/tournament.h"

#include <gtest/gtest.h>

#include <set>

namespace commtune::probes {
namespace {

TEST(Tournament, LetsEveryPairMeetOnceInDisjointRounds) {
  for (int n = 2; n <= 17; ++n) {
    const auto rounds = tournament(n);
    EXPECT_EQ(static_cast<int>(rounds.size()), n % 2 == 0 ? n - 1 : n);
    std::set<Pair> met;
    for (const auto& round : rounds) {
      std::set<int> busy;
      for (const auto& [a, b] : round) {
        EXPECT_LT(a, b);
        EXPECT_TRUE(busy.insert(a).second);
        EXPECT_TRUE(busy.insert(b).second);
        EXPECT_TRUE(met.insert({a, b}).second);
      }
    }
    EXPECT_EQ(static_cast<int>(met.size()), n * (n - 1) / 2);
  }
}

TEST(Tournament, IsEmptyForOne) { EXPECT_TRUE(tournament(1).empty()); }

TEST(SampledRounds, AreReproducibleAndInOrder) {
  const auto all = tournament(20);
  const auto some = sampled_rounds(all, 5, 7);
  EXPECT_EQ(some.size(), 5u);
  EXPECT_EQ(some, sampled_rounds(all, 5, 7));
  EXPECT_NE(some, sampled_rounds(all, 5, 8));
  EXPECT_EQ(sampled_rounds(all, 100, 7), all);
}

}  // namespace
}  // namespace commtune::probes
