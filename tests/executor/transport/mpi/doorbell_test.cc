#include "executor/transport/mpi/doorbell.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <thread>

namespace commtune {
namespace {

bool has_rung(const Doorbell& bell) {
  pollfd asked{bell.descriptor(), POLLIN, 0};
  return poll(&asked, 1, 0) == 1;
}

TEST(Doorbell, IsHeardUntilItIsSilenced) {
  Doorbell bell;
  Doorbell other;
  other.set_peers({"", bell.name()});
  EXPECT_FALSE(has_rung(bell));
  other.ring(0);  // has no bell
  other.ring(1);
  EXPECT_TRUE(has_rung(bell));
  bell.silence();
  EXPECT_FALSE(has_rung(bell));
}

TEST(HostileDoorbell, NameCannotBeKnownBeforehand) {
  // Of 32 random hexadecimal digits, two names have more than 16 in common once in 10^11 times.
  const Doorbell one;
  const Doorbell two;
  ASSERT_EQ(one.name().size(), two.name().size());
  ASSERT_LE(one.name().size(), Doorbell::kNameLength);
  int different = 0;
  for (std::size_t i = 0; i < one.name().size(); ++i) different += one.name()[i] != two.name()[i] ? 1 : 0;
  EXPECT_GE(different, 16);
}

TEST(HostileDoorbell, RungWithoutEndIsSilencedAllTheSame) {
  Doorbell bell;
  std::atomic<bool> done = false;
  const auto ring = [&] {
    Doorbell own;
    own.set_peers({bell.name()});
    while (!done) own.ring(0);
  };
  {
    const std::jthread first(ring);
    const std::jthread second(ring);
    for (int i = 0; i < 200; ++i) bell.silence();
    done = true;
  }
}

}  // namespace
}  // namespace commtune
