#include "probes/host_lock.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "probes/host_facts.h"

namespace commtune::probes {
namespace {

TEST(HostLock, IsHeldOnceAndGivenBack) {
  {
    auto held = HostLock::take();
    if (!held) GTEST_SKIP() << "a probe is running on this machine";
    EXPECT_FALSE(HostLock::take().has_value());
    HostLock moved = std::move(*held);
    EXPECT_FALSE(HostLock::take().has_value());
  }
  // Some other probe of this machine may have taken it at once.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(200);
  while (!HostLock::take()) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "it is not given back";
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

TEST(HostFacts, NameTheKernel) { EXPECT_TRUE(host_facts().contains("kernel")); }

}  // namespace
}  // namespace commtune::probes
