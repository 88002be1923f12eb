#include "api/advice/plan_advisor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "perfmodel/shipped_profiles.h"
#include "tests/tuner/testbed.h"

namespace commtune::api {
namespace {

const Road kRing{AllReduce{Collective::kRing}}, kHalving{AllReduce{Collective::kHalvingDoubling}};

/// Two roads that cost about the same, known to so many per cent.
Cluster known_to(double deviation) {
  Cluster cluster = tuner::made_cluster(4, 200e-6, 8e-9);
  cluster.operations = {tuner::all_reduce(kRing, 12e-9, deviation),
                        tuner::all_reduce(kHalving, 12.2e-9, deviation)};
  return cluster;
}

PlanAdvisorOptions options_for(const std::vector<std::string>& models, bool are_all) {
  PlanAdvisorOptions options;
  for (const std::string& model : models) options.profiles.push_back(*shipped_profile(model));
  options.are_all = are_all;
  options.roads = {kRing, kHalving};
  return options;
}

constexpr Seconds kAmple{60};

TEST(PlanAdvisor, NeedsTheRoadsThatCouldBeChosen) {
  PlanAdvisor advisor(options_for({"resnet50"}, true));
  const probes::Advice advice = advisor.advise(known_to(0.05), kAmple);
  EXPECT_EQ(advice.choice, "resnet50: all-to-all ring");
  EXPECT_FALSE(advice.certain);
  ASSERT_EQ(advice.needs.size(), 2u);
  for (const probes::RoadNeed& need : advice.needs) {
    EXPECT_EQ(need.workers, 4);
    EXPECT_GT(need.value, 0);
    EXPECT_LE(need.smallest, need.largest);
  }
}

TEST(PlanAdvisor, NeedsNothingWhereTheChoiceIsCertain) {
  PlanAdvisor advisor(options_for({"resnet50", "vgg16"}, true));
  const probes::Advice advice = advisor.advise(known_to(0), kAmple);
  EXPECT_TRUE(advice.certain);
  EXPECT_TRUE(advice.needs.empty());
  EXPECT_EQ(advice.choice, "resnet50: all-to-all ring; vgg16: all-to-all ring");
}

TEST(PlanAdvisor, IsNeverCertainWhereOtherModelsMayCome) {
  PlanAdvisor advisor(options_for({"resnet50"}, false));
  EXPECT_FALSE(advisor.advise(known_to(0), kAmple).certain);
}

TEST(PlanAdvisor, PlansTheOthersNextTimeWhereTimeIsShort) {
  int ticks = 0;  // a second whenever it is asked
  const auto clock = [&] { return Seconds{static_cast<double>(++ticks)}; };
  PlanAdvisorOptions one = options_for({"resnet50"}, true);
  one.clock = clock;
  PlanAdvisor(one).advise(known_to(0), Seconds{1e9});
  const Seconds enough_for_one{static_cast<double>(ticks)};
  PlanAdvisorOptions two = options_for({"resnet50", "vgg16"}, true);
  two.clock = clock;
  PlanAdvisor advisor(two);
  const probes::Advice first = advisor.advise(known_to(0), enough_for_one);
  EXPECT_EQ(first.choice, "resnet50: all-to-all ring");
  EXPECT_FALSE(first.certain);  // nobody knows of the other one
  const std::string next = advisor.advise(known_to(0), enough_for_one).choice;
  EXPECT_NE(next.find("vgg16: all-to-all ring"), std::string::npos) << next;
}

TEST(PlanAdvisor, SaysNothingOfAClusterThatCannotBePriced) {
  Cluster unknown;
  unknown.hosts = {{"a", 2}, {"b", 2}};
  PlanAdvisor advisor(options_for({"resnet50"}, true));
  const probes::Advice advice = advisor.advise(unknown, kAmple);
  EXPECT_TRUE(advice.needs.empty());
  EXPECT_TRUE(advice.choice.empty());
  EXPECT_FALSE(advice.certain);
}

TEST(PlanAdvisor, ShippedModelsNeedNoName) {
  EXPECT_EQ(shipped_profiles().size(), shipped_profile_names().size());
}

}  // namespace
}  // namespace commtune::api
