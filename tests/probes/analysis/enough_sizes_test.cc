#include "probes/analysis/enough_sizes.h"

#include <gtest/gtest.h>

namespace commtune::probes {
namespace {

TEST(EnoughSizes, AreThreeOverTwoDecades) {
  EXPECT_TRUE(are_enough(3, 64_B, 6400_B));
  EXPECT_FALSE(
      are_enough(2, 64_B, 64_MiB));  // a line through both, and nothing left to tell how far it is off
  EXPECT_FALSE(are_enough(9, 64_KiB, 1_MiB));
  EXPECT_FALSE(are_enough(0, 0_B, 0_B));
}

}  // namespace
}  // namespace commtune::probes
