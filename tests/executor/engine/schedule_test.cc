#include "executor/engine/schedule.h"

#include <gtest/gtest.h>

namespace commtune {
namespace {

Plan plan_of(std::size_t messages) {
  Plan plan;
  plan.messages.resize(messages);
  for (std::size_t i = 0; i < messages; ++i) plan.priority.push_back(static_cast<std::int32_t>(i));
  return plan;
}

TEST(Schedule, KeepsTheListOrderEvenWhenALaterMessageIsReady) {
  // Message 0 waits for layer 0, message 1 only for layer 1 (the last one, ready first).
  Schedule schedule(plan_of(2), {0, 1}, 2);
  schedule.begin();
  schedule.release(1);
  EXPECT_FALSE(schedule.next());
  schedule.release(2);
  ASSERT_TRUE(schedule.next());
  EXPECT_EQ(schedule.next()->message, 0U);
  schedule.started();
  EXPECT_EQ(schedule.next()->message, 1U);
  schedule.started();
  EXPECT_TRUE(schedule.all_started());
  EXPECT_FALSE(schedule.next());
}

TEST(Schedule, TakesTheMostUrgentOfWhatIsReady) {
  Plan plan = plan_of(3);
  plan.order = Order::kPriority;
  plan.priority = {30, 10, 20};
  Schedule schedule(plan, {2, 0, 1}, 3);
  schedule.begin();
  schedule.release(1);  // layer 2: message 0
  EXPECT_EQ(schedule.next()->message, 0U);
  schedule.release(3);  // all: message 1 is the most urgent now
  EXPECT_EQ(schedule.next()->message, 1U);
  schedule.started();
  EXPECT_EQ(schedule.next()->message, 2U);
  schedule.started();
  EXPECT_EQ(schedule.next()->message, 0U);
  schedule.started();
  EXPECT_FALSE(schedule.next());
}

TEST(Schedule, ADistributeWaitsForItsOwnReduceAndForItsTurn) {
  Plan plan = plan_of(2);
  plan.sequence = {
      {0, Stage::kReduce}, {0, Stage::kDistribute}, {1, Stage::kReduce}, {1, Stage::kDistribute}};
  Schedule schedule(plan, {0, 0}, 1);
  schedule.begin();
  schedule.release(1);
  EXPECT_EQ(schedule.next()->stage, Stage::kReduce);
  schedule.started();
  EXPECT_FALSE(schedule.next());  // message 1 could go, but its turn is later
  schedule.reduced(0);
  EXPECT_EQ(schedule.next()->stage, Stage::kDistribute);
  EXPECT_FALSE(schedule.next()->both);
  schedule.started();
  EXPECT_EQ(schedule.next()->message, 1U);
}

TEST(Schedule, BeginsEveryIterationAfresh) {
  Schedule schedule(plan_of(1), {0}, 1);
  for (int iteration = 0; iteration < 2; ++iteration) {
    schedule.begin();
    EXPECT_FALSE(schedule.next());
    schedule.release(1);
    EXPECT_TRUE(schedule.next());
    schedule.started();
  }
}

}  // namespace
}  // namespace commtune
