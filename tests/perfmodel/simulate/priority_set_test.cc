#include "perfmodel/simulate/priority_set.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace commtune {
namespace {

std::uint32_t smallest_of(const std::set<std::uint32_t>& kept, const PrioritySet& set) {
  return kept.empty() ? set.none() : *kept.begin();
}

/// Sizes at which a word of either level is just full, and those beside them.
constexpr std::size_t kSizes[] = {0, 1, 63, 64, 65, 127, 128, 4095, 4096, 4097, 20'000};

TEST(PrioritySet, TakesTheSmallestFirst) {
  std::mt19937_64 random(3);
  PrioritySet set;
  for (const std::size_t size : kSizes) {
    set.reset(size);
    std::set<std::uint32_t> kept;
    EXPECT_GE(set.none(), size);
    for (int step = 0; size > 0 && step < 3000; ++step) {
      const auto priority = static_cast<std::uint32_t>(random() % size);
      EXPECT_EQ(set.contains(priority), kept.contains(priority));
      if (random() % 3 > 0) {
        set.insert(priority);
        kept.insert(priority);
      } else if (const std::uint32_t gone = random() % 2 > 0 ? priority : smallest_of(kept, set);
                 gone != set.none()) {
        set.erase(gone);
        kept.erase(gone);
      }
      ASSERT_EQ(set.smallest(), smallest_of(kept, set)) << "of " << size << ", step " << step;
    }
    while (!kept.empty()) {
      ASSERT_EQ(set.smallest(), *kept.begin());
      set.erase(*kept.begin());
      kept.erase(kept.begin());
    }
    EXPECT_EQ(set.smallest(), set.none());
  }
}

TEST(PrioritySet, FindsOneFarBehindAllOthers) {
  PrioritySet set;
  set.reset(20'000);
  set.insert(19'999);
  set.insert(0);
  set.erase(0);
  EXPECT_EQ(set.smallest(), 19'999U);
  set.insert(7);
  EXPECT_EQ(set.smallest(), 7U);
}

TEST(PrioritySet, IsEmptyAfterAReset) {
  PrioritySet set;
  set.reset(100);
  set.insert(70);
  set.reset(100);
  EXPECT_FALSE(set.contains(70));
  EXPECT_EQ(set.smallest(), set.none());
}

}  // namespace
}  // namespace commtune
