#include "probes/sampling/log_sizes.h"

#include <gmock/gmock.h>

namespace commtune::probes {
namespace {

TEST(LogSizes, RiseByTheFactorAndEndWithTheLast) {
  EXPECT_THAT(log_sizes(Bytes{4}, Bytes{64}, 4), testing::ElementsAre(Bytes{4}, Bytes{16}, Bytes{64}));
  // 100 B is 25 elements; 4 * 4 * 4 = 64 is the last size below it.
  EXPECT_THAT(log_sizes(Bytes{4}, Bytes{100}, 4),
              testing::ElementsAre(Bytes{4}, Bytes{16}, Bytes{64}, Bytes{100}));
}

TEST(LogSizes, NeverRepeatASize) {
  const auto sizes = log_sizes(Bytes{4}, Bytes{64}, 1.1);
  for (std::size_t i = 1; i < sizes.size(); ++i) EXPECT_LT(sizes[i - 1], sizes[i]);
}

}  // namespace
}  // namespace commtune::probes
