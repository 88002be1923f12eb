#include "perfmodel/simulate/event_heap.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <set>

namespace commtune {
namespace {

TEST(EventHeap, SaysWhichIsTheSoonest) {
  EventHeap heap;
  EXPECT_EQ(heap.soonest(), std::numeric_limits<double>::infinity());
  heap.push({2, 20});
  heap.push({1, 10, 7});
  EXPECT_EQ(heap.soonest(), 1);
  const EventHeap::Event first = heap.take();
  EXPECT_EQ(first.whose, 10U);
  EXPECT_EQ(first.stamp, 7U);
  heap.push({3, 30});
  EXPECT_EQ(heap.take().whose, 20U);
  EXPECT_EQ(heap.take().whose, 30U);
  EXPECT_EQ(heap.soonest(), std::numeric_limits<double>::infinity());
}

TEST(EventHeap, ForgetsAllWhenCleared) {
  EventHeap heap;
  heap.push({1, 1});
  heap.push({2, 2});
  heap.take();
  heap.clear();
  EXPECT_EQ(heap.soonest(), std::numeric_limits<double>::infinity());
  heap.push({5, 3});
  EXPECT_EQ(heap.take().whose, 3U);
}

TEST(EventHeap, TakesTheSoonestFirst) {
  std::mt19937_64 random(20261130);
  EventHeap heap;
  std::multiset<double> known;
  for (int round = 0; round < 10'000; ++round) {
    if (known.empty() || random() % 2 == 0) {
      const auto at = static_cast<double>(random() % 1000);
      heap.push({at, 0});
      known.insert(at);
    } else {
      ASSERT_EQ(heap.take().at, *known.begin());
      known.erase(known.begin());
    }
    if (round % 3 == 0 && !known.empty()) {
      ASSERT_EQ(heap.soonest(), *known.begin());
    }
  }
}

}  // namespace
}  // namespace commtune
