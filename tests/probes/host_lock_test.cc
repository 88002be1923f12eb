#include "probes/host_lock.h"

#include <gtest/gtest.h>

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
  EXPECT_TRUE(HostLock::take().has_value());
}

TEST(HostFacts, NameTheKernel) { EXPECT_TRUE(host_facts().contains("kernel")); }

}  // namespace
}  // namespace commtune::probes
