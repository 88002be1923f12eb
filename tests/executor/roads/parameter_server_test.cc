#include "executor/roads/parameter_server.h"

#include <gtest/gtest.h>

namespace commtune {
namespace {

TEST(ParameterServer, LivesBesideTheFirstWorkerThatThePlanNamesAndThoseAfterIt) {
  const ParameterServer road{3, Placement::kColocated, Assignment::kEven, LocalSum::kNone, 2};
  EXPECT_EQ(server_rank(road, 4, 0), 2);
  EXPECT_EQ(server_rank(road, 4, 1), 3);
  EXPECT_EQ(server_rank(road, 4, 2), 0);
  EXPECT_EQ(server_of(road, 4, 0), 2);
  EXPECT_EQ(server_of(road, 4, 1), -1);
  EXPECT_EQ(server_of(road, 4, 2), 0);
}

TEST(ParameterServer, IsNoRankBeyondTheJob) {
  const ParameterServer colocated{2};
  EXPECT_EQ(server_of(colocated, 2, 1), 1);
  EXPECT_EQ(server_of(colocated, 2, 2), -1);
  const ParameterServer dedicated{1, Placement::kDedicated};
  EXPECT_EQ(server_rank(dedicated, 2, 0), 2);
  EXPECT_EQ(server_of(dedicated, 2, 1), -1);
  EXPECT_EQ(server_of(dedicated, 2, 2), 0);
  EXPECT_EQ(server_of(dedicated, 2, 3), -1);
}

}  // namespace
}  // namespace commtune
