#include "executor/engine/step_order.h"

#include <gtest/gtest.h>

namespace commtune {
namespace {

Plan plan_of(std::size_t messages) {
  Plan plan;
  plan.messages.resize(messages);
  for (std::size_t i = 0; i < messages; ++i) plan.priority.push_back(static_cast<std::int32_t>(i));
  return plan;
}

TEST(StepOrder, KeepsTheListOrderEvenWhenALaterMessageIsReady) {
  StepOrder step_order(plan_of(2));
  step_order.begin();
  step_order.release(1);
  EXPECT_FALSE(step_order.next());
  step_order.release(0);
  ASSERT_TRUE(step_order.next());
  EXPECT_EQ(step_order.next()->message, 0U);
  step_order.started();
  EXPECT_EQ(step_order.next()->message, 1U);
  step_order.started();
  EXPECT_TRUE(step_order.all_started());
  EXPECT_FALSE(step_order.next());
}

TEST(StepOrder, TakesTheMostUrgentOfWhatIsReady) {
  Plan plan = plan_of(3);
  plan.order = Order::kPriority;
  plan.priority = {30, 10, 20};
  StepOrder step_order(plan);
  step_order.begin();
  step_order.release(0);
  EXPECT_EQ(step_order.next()->message, 0U);
  step_order.release(2);
  step_order.release(1);  // the most urgent now
  EXPECT_EQ(step_order.next()->message, 1U);
  step_order.started();
  EXPECT_EQ(step_order.next()->message, 2U);
  step_order.started();
  EXPECT_EQ(step_order.next()->message, 0U);
  step_order.started();
  EXPECT_FALSE(step_order.next());
}

TEST(StepOrder, ADistributeWaitsForItsOwnReduceAndForItsTurn) {
  Plan plan = plan_of(2);
  plan.sequence = {
      {0, Stage::kReduce}, {0, Stage::kDistribute}, {1, Stage::kReduce}, {1, Stage::kDistribute}};
  StepOrder step_order(plan);
  step_order.begin();
  step_order.release(0);
  step_order.release(1);
  EXPECT_EQ(step_order.next()->stage, Stage::kReduce);
  step_order.started();
  EXPECT_FALSE(step_order.next());  // message 1 could go, but its turn is later
  step_order.reduced(0);
  EXPECT_EQ(step_order.next()->stage, Stage::kDistribute);
  EXPECT_FALSE(step_order.next()->both);
  step_order.started();
  EXPECT_EQ(step_order.next()->message, 1U);
}

TEST(StepOrder, APullWaitsForAllThatItBringsBack) {
  Plan plan;
  plan.messages = {{{{1, 0_B, 8_B}}}, {{{0, 0_B, 8_B}}}};
  plan.pulls = {{{{0, 0_B, 8_B}, {1, 0_B, 8_B}}}};
  plan.sequence = {{0, Stage::kReduce}, {1, Stage::kReduce}, {0, Stage::kDistribute}};
  StepOrder step_order(plan);
  step_order.begin();
  for (const std::uint32_t message : {0U, 1U}) {
    step_order.release(message);
    EXPECT_EQ(step_order.next()->stage, Stage::kReduce);
    step_order.started();
  }
  step_order.reduced(0);
  EXPECT_FALSE(step_order.next());
  step_order.reduced(1);
  ASSERT_TRUE(step_order.next());
  EXPECT_EQ(step_order.next()->stage, Stage::kDistribute);
}

TEST(StepOrder, BeginsEveryIterationAfresh) {
  StepOrder step_order(plan_of(1));
  for (int iteration = 0; iteration < 2; ++iteration) {
    step_order.begin();
    EXPECT_FALSE(step_order.next());
    step_order.release(0);
    EXPECT_TRUE(step_order.next());
    step_order.started();
  }
}

}  // namespace
}  // namespace commtune
