#include "probes/host/host_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <thread>

#include "probes/host/host_facts.h"
#include "tests/store/processes.h"

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

constexpr uid_t kNobody = 65534;

/// Takes the lock's name as somebody who does not probe. Held until the process ends.
void squat(uid_t user, std::string_view name = "commtune-probe") {
  const uid_t own = geteuid();
  if (seteuid(user) != 0) throw std::runtime_error("seteuid");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path + 1, name.size());
  const int squatter = socket(AF_UNIX, SOCK_DGRAM, 0);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (bind(squatter, reinterpret_cast<const sockaddr*>(&address), length) != 0)
    throw std::runtime_error("bind");
  if (seteuid(own) != 0) throw std::runtime_error("seteuid");
}

/// What the lock says in a network of its own, where no real probe is in the way; empty if none can be made.
std::string conflict_after(const std::function<void()>& attack) {
  const commtune::tests::ChildProcess child([&](int pipe) {
    if (geteuid() != 0 || unshare(CLONE_NEWNET) != 0) return;
    attack();
    const std::string said = HostLock::take() ? "the lock was given" : HostLock::conflict("h1");
    if (::write(pipe, said.data(), said.size()) < 0) throw std::runtime_error("pipe");
  });
  return child.read_text();
}

TEST(HostileHolder, OfAnotherUserIsNamedAtOnce) {
  const std::string said = conflict_after([] { squat(kNobody); });
  if (said.empty()) GTEST_SKIP() << "needs root and a network namespace, to be two users";
  EXPECT_THAT(said, ::testing::HasSubstr("another probe is running on host h1"));
  EXPECT_THAT(said, ::testing::ContainsRegex("user [a-z]* ?\\(?uid 65534"));
  EXPECT_THAT(said, ::testing::HasSubstr("@commtune-probe"));
}

TEST(HostileHolder, AmongManySocketsOfTheSameUserIsNamed) {
  const std::string said = conflict_after([] {
    for (int i = 0; i < 500; ++i) squat(kNobody, "commtune-probe" + std::to_string(i));
    squat(kNobody);
  });
  if (said.empty()) GTEST_SKIP() << "needs root and a network namespace, to be two users";
  EXPECT_THAT(said, ::testing::HasSubstr("uid 65534"));
}

TEST(HostLock, HeldByOurselvesNeedsNoName) {
  const std::string said = conflict_after([] { squat(geteuid()); });
  if (said.empty()) GTEST_SKIP() << "needs root and a network namespace";
  EXPECT_THAT(said, ::testing::HasSubstr("wait for it to end"));
  EXPECT_THAT(said, ::testing::Not(::testing::HasSubstr("uid")));
}

TEST(HostFacts, NameTheKernel) { EXPECT_TRUE(host_facts().contains("kernel")); }

}  // namespace
}  // namespace commtune::probes
