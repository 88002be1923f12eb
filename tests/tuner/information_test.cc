#include "tuner/information.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "perfmodel/base/error.h"
#include "perfmodel/shipped_profiles.h"
#include "tests/tuner/testbed.h"

namespace commtune::tuner {
namespace {

const Road kHalving{AllReduce{Collective::kHalvingDoubling}};

/// Four hosts with two roads, of which the second is dearer by this ratio.
Cluster two_roads(double dearer, double first_deviation, double second_deviation) {
  Cluster cluster = made_cluster(4, 200e-6, 8e-9);
  cluster.operations = {all_reduce(kRing, 12e-9, first_deviation),
                        all_reduce(kHalving, 12e-9 * dearer, second_deviation)};
  return cluster;
}

Information information(const Cluster& cluster) {
  InformationOptions options;
  options.roads = {kRing, kHalving};
  return value_of_information(*shipped_profile("resnet50"), cluster, options);
}

double value(const Information& all, const Road& road) {
  const auto found = std::ranges::find(all.roads, road, &RoadValue::road);
  return found == all.roads.end() ? 0 : found->value;
}

TEST(Information, IsWorthNothingWhereNothingIsInDoubt) {
  const Information all = information(two_roads(1.05, 0, 0));
  EXPECT_EQ(all.chosen(), kRing);
  EXPECT_TRUE(all.complete);
  EXPECT_EQ(all.most(), 0);
}

TEST(Information, IsWorthMostOfTheRoadThatIsInDoubt) {
  const Information of_second = information(two_roads(1.05, 0.01, 0.1));
  EXPECT_GT(value(of_second, kHalving), 10 * value(of_second, kRing));
  const Information of_chosen = information(two_roads(1.05, 0.1, 0.01));
  EXPECT_GT(value(of_chosen, kRing), 10 * value(of_chosen, kHalving));
}

// Nearly all of the iteration is traffic, and both roads take the same. An error of standard deviation s then
// is worth the mean of max(0, 1 - exp(s z)): s / sqrt(2 pi) to first order, 0.0199 for s = 5 %; the second
// order takes s^2 / 4 of it.
TEST(Information, OfARoadThatIsAsGoodIsTheNormalLoss) {
  const double s = 0.05;
  const Information all = information(two_roads(1, 0, s));
  const double exposed = 1 - shipped_profile("resnet50")->backward() / all.roads.front().iteration;
  ASSERT_GT(exposed, 0.8);
  EXPECT_NEAR(all.most(), s / std::sqrt(2 * M_PI) - s * s / 4, 0.2 * s / std::sqrt(2 * M_PI));
}

TEST(Information, FallsWithTheDistanceOfARoad) {
  double before = 1;
  for (const double dearer : {1.0, 1.1, 1.3}) {
    const double now = value(information(two_roads(dearer, 0, 0.1)), kHalving);
    EXPECT_LT(now, before) << dearer;
    before = now;
  }
  EXPECT_LT(before, 1e-3);
}

TEST(Information, LeavesOutRoadsThatCannotBeChosen) {
  EXPECT_EQ(information(two_roads(10, 0.01, 0.01)).roads.size(), 1u);
}

TEST(Information, SaysWhichMessagesThePlansSend) {
  const Information all = information(two_roads(1, 0, 0.1));
  for (const RoadValue& road : all.roads) {
    EXPECT_GT(road.smallest, Bytes{0});
    EXPECT_LE(road.smallest, road.largest);
    EXPECT_LE(road.largest, shipped_profile("resnet50")->gradient_bytes());
  }
}

TEST(Information, EndsWhenTimeIsOut) {
  InformationOptions options;
  options.roads = {kRing, kHalving};
  int asked = 0;
  options.out_of_time = [&] { return ++asked > 4; };
  const Profile profile = *shipped_profile("resnet50");
  EXPECT_FALSE(value_of_information(profile, two_roads(1, 0, 0.1), options).complete);
  options.out_of_time = [] { return true; };
  try {
    value_of_information(profile, two_roads(1, 0, 0.1), options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kTimeout);
  }
}

}  // namespace
}  // namespace commtune::tuner
