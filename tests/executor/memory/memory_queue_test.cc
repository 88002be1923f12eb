#include "executor/memory/memory_queue.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "executor/base/task.h"
#include "executor/memory/host_memory.h"
#include "tests/executor/memory/manual_memory.h"

namespace commtune::tests {
namespace {

using FourFloats = std::array<float, 4>;

Buffer host(FourFloats& floats) { return std::as_writable_bytes(std::span(floats)); }
Buffer device(FourFloats& floats) {
  return ManualMemory::on_device(std::as_writable_bytes(std::span(floats)));
}

TEST(HostMemory, OperationsHaveEndedWhenTheCallReturns) {
  MemoryQueue queue(host_memory(), {});
  FourFloats a{1, 2, 3, 4}, b{10, 20, 30, 40};
  EXPECT_TRUE(queue.add(DataType::kFloat32, host(a), host(b)).has_ended());
  EXPECT_EQ(a, (FourFloats{11, 22, 33, 44}));
  EXPECT_TRUE(queue.scale(DataType::kFloat32, host(a), 2).has_ended());
  EXPECT_TRUE(queue.copy(host(b), host(a)).has_ended());
  EXPECT_EQ(b, (FourFloats{22, 44, 66, 88}));
  std::array<std::byte, 8> halves{};
  EXPECT_TRUE(queue.cast(DataType::kBfloat16, halves, DataType::kFloat32, host(b)).has_ended());
  EXPECT_TRUE(queue.cast(DataType::kFloat32, host(a), DataType::kBfloat16, halves).has_ended());
  EXPECT_EQ(a, b);
}

TEST(HostMemory, AllocatesForVectors) {
  const Buffer buffer = host_memory().allocate(3);
  EXPECT_EQ(buffer.bytes, 3U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.address) % 64, 0U);
  host_memory().release(buffer);
}

/// A device's memory and what awaits it.
class MemoryQueueTest : public ::testing::Test {
 protected:
  Task add() { co_await queue_.add(DataType::kFloat32, device(a_), device(b_)); }
  void progress() {
    std::vector<std::coroutine_handle<>> resumable;
    queue_.progress(resumable);
    for (const auto& each : resumable) each.resume();
  }

  ManualMemory memory_;
  int woken_ = 0;
  MemoryQueue queue_{memory_, [this] { ++woken_; }};
  FourFloats a_{1, 2, 3, 4}, b_{10, 20, 30, 40};
};

TEST_F(MemoryQueueTest, ACoroutineGoesOnWhenItsOperationHasEnded) {
  Task task = add();
  task.start();
  progress();
  EXPECT_FALSE(task.done());
  memory_.end(0);
  EXPECT_EQ(woken_, 1);
  EXPECT_FALSE(task.done());
  progress();
  EXPECT_TRUE(task.done());
  EXPECT_EQ(a_[3], 44);
}

TEST_F(MemoryQueueTest, OperationsEndInAnyOrderAndNumbersAreUsedAgain) {
  Task first = add();
  Task second = add();
  first.start();
  second.start();
  memory_.end(1);
  progress();
  EXPECT_FALSE(first.done());
  EXPECT_TRUE(second.done());
  Task third = add();
  third.start();  // under the second's number
  memory_.end(0);
  progress();
  EXPECT_TRUE(first.done());
  EXPECT_FALSE(third.done());
  memory_.end(1);
  progress();
  EXPECT_TRUE(third.done());
}

TEST_F(MemoryQueueTest, AnOperationThatEndedBeforeItIsAwaitedKeepsNobodyWaiting) {
  AsyncOperation operation = queue_.add(DataType::kFloat32, device(a_), device(b_));
  EXPECT_FALSE(operation.has_ended());
  memory_.end(0);
  progress();
  EXPECT_TRUE(operation.has_ended());
}

TEST_F(MemoryQueueTest, WhoIsGoneHearsNoMore) {
  {
    Task task = add();
    task.start();
  }
  memory_.end(0);
  progress();
  EXPECT_EQ(a_[0], 11);  // it was done all the same
  Task next = add();
  next.start();
  memory_.end(0);
  progress();
  EXPECT_TRUE(next.done());
}

TEST_F(MemoryQueueTest, WhatComesAfterAnOperationIsCalledOnceAtItsEnd) {
  int called = 0;
  queue_.when_ended(queue_.copy(device(a_), device(b_)), [&] { ++called; });
  progress();
  EXPECT_EQ(called, 0);
  memory_.end(0);
  progress();
  progress();
  EXPECT_EQ(called, 1);
  queue_.when_ended({}, [&] { ++called; });
  EXPECT_EQ(called, 2);
}

TEST(MemoryQueue, LeavesNothingUnderWayAndNobodyToWake) {
  ManualMemory memory;
  FourFloats a{1, 2, 3, 4}, b{};
  {
    MemoryQueue queue(memory, [] {});
    EXPECT_TRUE(memory.has_waker());
    queue.when_ended(queue.copy(device(b), device(a)), [] { FAIL() << "nobody asked for its end any more"; });
  }
  EXPECT_EQ(b, a);
  EXPECT_FALSE(memory.has_waker());
}

}  // namespace
}  // namespace commtune::tests
