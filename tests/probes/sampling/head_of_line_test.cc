#include "probes/sampling/head_of_line.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace commtune::probes {
namespace {

/// A cluster whose sockets hold `full` messages of those ahead, each of which takes `each` to pass.
class Sockets {
 public:
  Sockets(int full, Seconds each) : full_(full), each_(each) {}

  std::optional<HeadOfLineWaits> find(Seconds allowed) {
    return find_head_of_line([this](int ahead) { return wait_behind(ahead); }, kFewestAhead, allowed);
  }

  std::vector<int> tried;
  std::size_t most_tries = 100;

 private:
  std::optional<HeadOfLineTrial> wait_behind(int ahead) {
    if (tried.size() == most_tries) return std::nullopt;
    tried.push_back(ahead);
    return HeadOfLineTrial{1e-3 * std::min(ahead, full_), ahead * each_};
  }

  int full_;
  Seconds each_;
};

TEST(HeadOfLineWaits, StreamsGrowUntilTheWaitDoesNot) {
  Sockets sockets(20, Seconds{0});
  const auto found = sockets.find(Seconds{1});
  ASSERT_TRUE(found);
  // 16 messages are fewer than fit; 32 and 64 make no difference.
  EXPECT_EQ(sockets.tried, (std::vector{4, 8, 16, 32, 64, 32}));
  EXPECT_EQ(found->ahead, 32);
  EXPECT_EQ(found->waits, (std::vector{20e-3, 20e-3, 20e-3}));
}

TEST(HeadOfLineWaits, StartsWithAsManyAsAreAskedFor) {
  std::vector<int> tried;
  const auto wait = [&](int ahead) {
    tried.push_back(ahead);
    return HeadOfLineTrial{1e-3, Seconds{0}};
  };
  ASSERT_TRUE(find_head_of_line(wait, 8, Seconds{1}));
  EXPECT_EQ(tried, (std::vector{8, 16, 8}));
}

TEST(HeadOfLineWaits, EndsAtTheLongestStream) {
  Sockets sockets(100'000, Seconds{0});
  const auto found = sockets.find(Seconds{1});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->ahead, kMostAhead);
  EXPECT_EQ(found->waits.size(), 3u);
}

TEST(HeadOfLineWaits, WhatTheFirstTryTakesLimitsTheRest) {
  // The first takes 20 ms and the second 40: a third, of twice that, is not allowed, but another of these.
  Sockets sockets(100'000, Seconds{5e-3});
  const auto found = sockets.find(Seconds{100e-3});
  ASSERT_TRUE(found);
  EXPECT_EQ(sockets.tried, (std::vector{4, 8, 8}));
  EXPECT_EQ(found->waits, (std::vector{8e-3, 8e-3}));
}

TEST(HeadOfLineWaits, KeepsWhatWasFoundWhenAskedToStop) {
  Sockets sockets(20, Seconds{0});
  sockets.most_tries = 2;
  const auto found = sockets.find(Seconds{1});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->ahead, 8);
  sockets.tried.clear();
  sockets.most_tries = 0;
  EXPECT_FALSE(sockets.find(Seconds{1}));
}

}  // namespace
}  // namespace commtune::probes
