#include "tests/perfmodel/synthetic_profile.h"

#include <gmock/gmock.h>

namespace commtune {
namespace {

TEST(SyntheticProfile, SplitsEvenly) {
  const Profile profile = synthetic_profile(1000, 4_KiB, Seconds{0.1}, Seconds{0.2}, 2, Seconds{0.01});
  EXPECT_EQ(profile.tensor_count(), 2000U);
  EXPECT_EQ(profile.gradient_bytes(), Bytes{2000ULL * 4096});
  EXPECT_NEAR(profile.forward().count(), 0.1, 1e-12);
  EXPECT_NEAR(profile.backward().count(), 0.2, 1e-12);
  EXPECT_NEAR(profile.update().count(), 0.01, 1e-12);
}

}  // namespace
}  // namespace commtune
