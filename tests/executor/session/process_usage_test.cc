#include "executor/session/process_usage.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <thread>
#include <vector>

namespace commtune {
namespace {

TEST(ProcessUsage, CountsWhatWasComputed) {
  const ProcessUsage before = process_usage();
  while ((process_usage().cpu - before.cpu).count() < 0.05) {
  }
  EXPECT_GT(before.peak.count, 1U << 20);
  EXPECT_GE(process_usage().peak.count, before.peak.count);
}

TEST(ProcessUsage, CountsHowLongThreadsHadNoCore) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  std::atomic<bool> stop = false;
  const int one_too_many = CPU_COUNT(&allowed) + 1;
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(one_too_many));
  for (int i = 0; i < one_too_many; ++i) {
    threads.emplace_back([&] {
      while (!stop) {
      }
    });
  }
  const ProcessUsage before = process_usage();
  // One thread more than there are cores: somebody always waits.
  ProcessUsage now = before;
  while ((now.delayed - before.delayed).count() < 0.05 && (now.cpu - before.cpu).count() < 60) {
    now = process_usage();
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  if (before.delayed.count() == 0 && now.delayed.count() == 0)
    GTEST_SKIP() << "this kernel does not count how long threads wait for a core (no schedstat)";
  EXPECT_GT((now.delayed - before.delayed).count(), 0.05);
}

}  // namespace
}  // namespace commtune
