// A question whose time is limited: the clock is made up, and goes on by one whenever it is read.

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "api/view/answer_json.h"
#include "perfmodel/base/error.h"
#include "perfmodel/shipped_profiles.h"
#include "tests/tuner/testbed.h"
#include "tuner/messages.h"
#include "tuner/search/search.h"
#include "tuner/tuner.h"

namespace commtune::tuner {
namespace {

using api::to_json;

/// Out of time when asked for the `most`-th time; counts how often it was asked.
struct MadeClock {
  int most = 0, asked = 0;
  OutOfTime out_of_time() {
    return [this] { return ++asked >= most; };
  }
};

constexpr int kNever = 1'000'000'000;

/// Links whose latency and time per byte are known to within 2 %, so that there is doubt to compute.
Cluster doubtful_cluster() {
  Cluster cluster = made_cluster(4, 200e-6, 8e-9);
  Fit& fit = cluster.links[LinkClass::kInterHost].alone;
  fit.covariance = {1.6e-11, 0, 0, 2.56e-20};
  return cluster;
}

Answer answer_within(const OutOfTime& out_of_time, int draws = TuneOptions{}.draws) {
  TuneOptions options;
  options.draws = draws;
  options.out_of_time = out_of_time;
  return tune(*shipped_profile("resnet50"), doubtful_cluster(), options);
}

TEST(TimeLimit, ThatIsNotReachedChangesNothing) {
  MadeClock clock{kNever};
  const Answer limited = answer_within(clock.out_of_time());
  const Answer unlimited = tune(*shipped_profile("resnet50"), doubtful_cluster());
  EXPECT_TRUE(limited.complete);
  EXPECT_EQ(to_json(limited), to_json(unlimited));
  EXPECT_TRUE(to_json(limited).at("complete"));
}

TEST(TimeLimit, HasNoAnswerWhereNothingWasPriced) {
  MadeClock clock{1};
  try {
    answer_within(clock.out_of_time());
    FAIL() << "there is no plan to answer with";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kTimeout);
    EXPECT_STREQ(error.what(), kNothingInTime);
  }
  EXPECT_EQ(clock.asked, 1) << "who was told once that time is out does not ask again";
}

TEST(TimeLimit, EndsWithTheBestPlanSoFarWhereverItComes) {
  MadeClock whole{kNever};
  answer_within(whole.out_of_time());
  int answered = 0;
  for (int most = 1; most < whole.asked; most += 1 + most / 8) {
    MadeClock clock{most};
    try {
      const Answer answer = answer_within(clock.out_of_time());
      ++answered;
      ASSERT_FALSE(answer.complete) << most;
      ASSERT_FALSE(to_json(answer).at("complete"));
      ASSERT_EQ(answer.chosen, 0U) << "without doubt the fastest";
      for (const Entry& entry : answer.ranking) {
        ASSERT_NO_THROW(check(entry.plan, *shipped_profile("resnet50"))) << most << " " << entry.method;
        ASSERT_LE(answer.ranking.front().prediction.iteration, entry.prediction.iteration);
        ASSERT_FALSE(entry.doubt) << "of some draws there is none";
      }
      ASSERT_FALSE(answer.reason.empty());
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), ErrorCode::kTimeout);
    }
    ASSERT_EQ(clock.asked, most);
  }
  EXPECT_GT(answered, 20);
}

TEST(TimeLimit, IsLookedAtWhileRoadsAreBoundedMethodsTriedAndDrawsSimulated) {
  // 13 methods on at least one road each, and 64 draws of what they made: none of them goes unwatched.
  MadeClock without_draws{kNever}, with_draws{kNever};
  answer_within(without_draws.out_of_time(), 0);
  answer_within(with_draws.out_of_time());
  EXPECT_GT(without_draws.asked, 13);
  EXPECT_GT(with_draws.asked, without_draws.asked + 64);
}

TEST(TimeLimit, LeavesOutTheDoubtsEdgeUnlessEachRoadHasOne) {
  MadeClock without_draws{kNever};
  answer_within(without_draws.out_of_time(), 0);
  int cut_short = 0;
  for (int most = without_draws.asked; most < without_draws.asked + 8; ++most) {
    MadeClock clock{most};
    const Answer answer = answer_within(clock.out_of_time(), 1);
    const auto with_edge = std::ranges::count_if(
        answer.bounds, [](const RoadBound& bound) { return bound.bound_low.has_value(); });
    cut_short += with_edge > 0 && std::cmp_less(with_edge, answer.bounds.size());
    EXPECT_EQ(answer.bound_low.has_value(), std::cmp_equal(with_edge, answer.bounds.size())) << most;
  }
  EXPECT_GT(cut_short, 0) << "time ran out between two roads";
}

TEST(TimeLimit, MayEndTheWorkWithoutAnAnswer) {
  const OutOfTime stops = []() -> bool { throw Error(ErrorCode::kInterrupted, "the service stops"); };
  EXPECT_THROW(answer_within(stops), Error);
}

TEST(TimeLimit, EndsTheJointSearchWithNoWorsePlanThanItsStart) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 20; ++round) {
    const Profile profile = made_profile(random, 40);
    const Planning job(profile, made_cluster(8, 1e-4, 8e-9), 4, {AllReduce{}, ParameterServer{2}});
    if (job.work.tensors.empty()) continue;
    Plan plan = job.empty_plan(AllReduce{});
    plan.messages = {{}};
    for (TensorId id = static_cast<TensorId>(job.work.tensors.size()); id-- > 0;)
      plan.messages[0].pieces.push_back({id, Bytes{0}, job.work.tensors[id].bytes});
    plan.priority = {0};
    const PredictedPlan start{plan, simulate(job.work, plan, job.roads.front().cost)};
    for (const int most : {1, 2, 5, 20, 100}) {
      MadeClock clock{most};
      const SearchReport report = joint_search(job, {start}, {.out_of_time = clock.out_of_time()});
      ASSERT_NO_THROW(check(report.best, profile));
      ASSERT_LE(report.prediction.iteration, start.prediction.iteration * (1 + 1e-9));
      ASSERT_TRUE(report.stop != StopReason::kTime || clock.asked >= most);
    }
  }
}

/// Eight tensors of a terabyte: what takes a few lines to write down.
std::vector<Message> terabytes() {
  std::vector<Message> messages;
  for (TensorId id = 0; id < 8; ++id) messages.push_back({{{id, Bytes{0}, Bytes{std::uint64_t{1} << 40}}}});
  return messages;
}

TEST(HostileProfile, IsNotCutIntoMorePiecesThanAPlanMayHave) {
  // 2^43 bytes in at most 2^22 pieces, 16 of which may be ends of messages: more than 2^21 bytes each.
  const std::uint64_t smallest = smallest_partition(terabytes());
  EXPECT_GT(smallest, std::uint64_t{1} << 21);
  EXPECT_LT(smallest, (std::uint64_t{1} << 21) + 32);
  const Bytes element{std::uint64_t{1} << 30};  // so that the test itself stays small
  EXPECT_EQ(cut_messages(terabytes(), Bytes{1}, element).size(), 8U << 10U);
}

TEST(HostileProfile, ModelsThatExistAreCutAsTheyWere) {
  // P3's 50,000 parameters of a model with 175 billion, in float32 on 96 layers.
  std::vector<Message> messages;
  for (TensorId id = 0; id < 96; ++id) messages.push_back({{{id, Bytes{0}, Bytes{7'291'666'668}}}});
  EXPECT_LT(smallest_partition(messages), 200'000U);
}

}  // namespace
}  // namespace commtune::tuner
