#include "tuner/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "api/view/answer_json.h"
#include "perfmodel/base/error.h"
#include "perfmodel/base/random.h"
#include "perfmodel/shipped_profiles.h"
#include "tests/tuner/testbed.h"

namespace commtune::tuner {
namespace {

using api::to_json;

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

/// An answer whose plans a, b, c, ... are predicted to take 100, 101, 102, ... ms, all in doubt of 10 ms. The
/// first is chosen.
Answer answer_of(int plans) {
  Answer answer;
  for (int i = 0; i < plans; ++i) {
    Entry& entry = answer.ranking.emplace_back();
    entry.method = std::string(1, static_cast<char>('a' + i));
    entry.title = std::string(1, static_cast<char>('A' + i));
    entry.plan.method = entry.method;
    entry.plan.credit = Bytes{static_cast<std::uint64_t>(i) + 1};  // so that they differ
    entry.prediction.iteration = Seconds{0.1 + 0.001 * i};
    entry.doubt = Doubt{.low = entry.prediction.iteration - Seconds{0.01},
                        .high = entry.prediction.iteration + Seconds{0.01}};
    entry.messages = 4;
  }
  answer.clear_winner = false;
  return answer;
}

/// Runs plans on a made-up cluster, each run five iterations and a second long.
class MadeRuns {
 public:
  std::map<std::string, double> seconds;  ///< an iteration of each method's plan; 0.1 where there is none
  double run_noise = 0;                   ///< standard deviation from run to run, as a part of that
  double drift = 0;                       ///< by which part of that everything gets slower with each run
  std::map<std::string, int> fails_in_run;
  ErrorCode failure = ErrorCode::kPeerLost;
  std::vector<std::string> order;  ///< methods as they were run

  explicit MadeRuns(std::uint64_t seed = 1) : random_(seed) {}

  VerifyOptions options(double budget, int plans = 100) {
    return {{plans, Seconds{budget}},
            [this](const Plan& plan) { return run(plan.method); },
            [this] { return Seconds{static_cast<double>(order.size())}; }};
  }

 private:
  std::vector<Seconds> run(const std::string& method) {
    const double slower = 1 + drift * static_cast<double>(order.size()) + run_noise * random_.normal();
    order.push_back(method);
    if (fails_in_run.contains(method) && --fails_in_run[method] == 0)
      throw Error(failure, method + " failed");
    const double usual = seconds.contains(method) ? seconds[method] : 0.1;
    return std::vector<Seconds>(5, Seconds{usual * slower});
  }

  Random random_;
};

std::vector<std::string> methods_of(const Answer& answer) {
  std::vector<std::string> methods;
  for (const Entry& entry : answer.ranking) methods.push_back(entry.method);
  return methods;
}

TEST(Verify, TheMeasurementChooses) {
  Answer answer = answer_of(3);
  MadeRuns runs;
  runs.run_noise = 0.002;
  runs.seconds = {{"a", 0.12}, {"b", 0.11}, {"c", 0.1}};
  verify(answer, runs.options(1000));
  EXPECT_THAT(methods_of(answer), ElementsAre("c", "b", "a"));
  EXPECT_EQ(answer.chosen, 0U);
  EXPECT_TRUE(answer.clear_winner);
  EXPECT_EQ(answer.verified->end, VerifyEnd::kOneLeft);
  EXPECT_EQ(answer.verified->plans, 3);
  EXPECT_EQ(answer.verified->predicted, "a");
  EXPECT_EQ(answer.verified->elapsed, Seconds(static_cast<double>(runs.order.size())));
  EXPECT_NEAR(entry_of(answer, "a").measured->behind, 0.2, 0.01);
  EXPECT_NEAR(entry_of(answer, "a").measured->median.count(), 0.12, 0.001);
  EXPECT_EQ(entry_of(answer, "c").measured->rounds, answer.verified->rounds);
  EXPECT_EQ(entry_of(answer, "c").measured->iterations, 5 * answer.verified->rounds);
}

TEST(Verify, NobodyLeavesBeforeThreeRoundsAndTheOrderAlternates) {
  Answer answer = answer_of(3);
  MadeRuns runs;  // without noise: what is certain is so as early as can be
  runs.seconds["b"] = 0.2;
  verify(answer, runs.options(1000));
  EXPECT_THAT(runs.order, ElementsAre("a", "b", "c", "c", "b", "a", "a", "b", "c"));
  // a and c are alike, and b is not in question any more.
  EXPECT_EQ(answer.verified->end, VerifyEnd::kAlike);
  EXPECT_EQ(answer.verified->rounds, 3);
}

TEST(Verify, RunsThoseThatTheDoubtCannotTellFromTheChosenOne) {
  Answer answer = answer_of(4);
  answer.ranking[1].doubt->low = Seconds{0.2};  // the chosen one takes 110 ms at most
  EXPECT_THAT(plans_to_verify(answer, 100), ElementsAre(0, 2, 3));
  EXPECT_THAT(plans_to_verify(answer, 2), ElementsAre(0, 2));
  answer.chosen = 3;
  EXPECT_THAT(plans_to_verify(answer, 2), ElementsAre(3, 0));
  answer.ranking[1].doubt.reset();
  EXPECT_THAT(plans_to_verify(answer, 100), ElementsAre(3, 0, 1, 2));
}

TEST(Verify, WithNothingInDoubtTheChosenPlanIsRunOnce) {
  Answer answer = answer_of(2);
  answer.clear_winner = true;
  answer.ranking[1].doubt->low = Seconds{0.2};
  MadeRuns runs;
  verify(answer, runs.options(1000));
  EXPECT_THAT(runs.order, ElementsAre("a"));
  EXPECT_TRUE(answer.clear_winner);
  EXPECT_EQ(answer.verified->end, VerifyEnd::kOneLeft);
  EXPECT_THAT(answer.reason, HasSubstr("No other plan's range overlaps that of A"));
  EXPECT_FALSE(entry_of(answer, "b").measured);
}

TEST(Verify, WhatIsTheSamePlanRunsOnceForAllItsNames) {
  Answer answer = answer_of(3);
  answer.ranking[2].plan.credit = answer.ranking[0].plan.credit;
  MadeRuns runs;
  runs.seconds = {{"a", 0.1}, {"b", 0.2}};
  verify(answer, runs.options(1000));
  EXPECT_THAT(runs.order, Not(::testing::Contains("c")));
  EXPECT_EQ(entry_of(answer, "c").measured->median, entry_of(answer, "a").measured->median);
  EXPECT_THAT(methods_of(answer), ElementsAre("a", "c", "b"));
  EXPECT_THAT(answer.reason,
              HasSubstr("Measured 2 plans in 3 rounds (6.00 s): A 100 ms, B 200 ms (+100.0 %). "));
}

TEST(Verify, WhatDriftsChangesAllAlike) {
  // Everything gets slower by a fifth of a per cent with each run: by 3 % in the 16 runs that there is time
  // for, in which b wins 1 %. Only within a round does that show.
  Answer answer = answer_of(2);
  MadeRuns runs;
  runs.drift = 0.002;
  runs.seconds = {{"a", 0.101}, {"b", 0.1}};
  verify(answer, runs.options(16));
  EXPECT_EQ(answer.verified->end, VerifyEnd::kOneLeft);
  EXPECT_EQ(answer.ranking[answer.chosen].method, "b");
  EXPECT_NEAR(entry_of(answer, "a").measured->behind, 0.01, 0.002);
}

TEST(Verify, NobodyLosesByAlwaysComingSecond) {
  Answer answer = answer_of(2);
  MadeRuns runs;
  runs.drift = 0.005;  // of equal plans the second one of a round is always the slower
  verify(answer, runs.options(100));
  EXPECT_NE(answer.verified->end, VerifyEnd::kOneLeft);
  EXPECT_FALSE(answer.clear_winner);
}

TEST(Verify, WhoLeftEarlyIsComparedInTheRoundsThatItTookPartIn) {
  // b leaves after three rounds. All get slower by half in the others, so that the medians of all iterations
  // have b before a, which was the faster one in every round.
  Answer answer = answer_of(3);
  MadeRuns runs(3);
  runs.seconds = {{"b", 0.12}};
  runs.drift = 0.01;
  runs.run_noise = 0.001;
  verify(answer, runs.options(60));
  ASSERT_EQ(entry_of(answer, "b").measured->rounds, 3);
  ASSERT_GT(entry_of(answer, "a").measured->median, entry_of(answer, "b").measured->median);
  EXPECT_EQ(answer.ranking.back().method, "b");
  EXPECT_NEAR(entry_of(answer, "b").measured->behind, 0.2, 0.02);
}

/// Of equal plans, in how many of 400 verifications one was said to be slower.
int false_certainties(int plans) {
  int wrong = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    Answer answer = answer_of(plans);
    MadeRuns runs(seed);
    runs.run_noise = 0.01;
    verify(answer, runs.options(30.0 * plans));
    const auto behind = [&](const Entry& entry) { return entry.measured->rounds < answer.verified->rounds; };
    if (answer.verified->end == VerifyEnd::kOneLeft || std::ranges::any_of(answer.ranking, behind)) ++wrong;
  }
  return wrong;
}

TEST(Verify, IsWrongInFiveOfAHundredCasesAtMost) {
  // 20 of 400, with a standard deviation of 4.4. One interval of 95 % at each of the 28 looks, for each of
  // the pairs, is wrong five times as often and more.
  EXPECT_LE(false_certainties(2), 20 + 2 * 4.4);
  EXPECT_LE(false_certainties(5), 20 + 2 * 4.4);
}

TEST(Verify, FindsADifferenceThatIsThere) {
  // 2 % between runs that scatter by 1 %: 1.4 % in the difference. At the 14th look t(15) at 0.05 / 210
  // is 4.8: an interval of 4.8 * 1.4 % / 4 = 1.7 % after 16 rounds.
  int found = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Answer answer = answer_of(2);
    MadeRuns runs(seed);
    runs.run_noise = 0.01;
    runs.seconds = {{"a", 0.102}};
    verify(answer, runs.options(2 * 30));
    if (answer.verified->end == VerifyEnd::kOneLeft && answer.ranking[answer.chosen].method == "b") ++found;
  }
  EXPECT_GE(found, 95);
}

TEST(Verify, OfPlansThatAreAlikeTheSimplestIsChosen) {
  Answer answer = answer_of(3);
  answer.ranking[2].messages = 3;
  MadeRuns runs;
  runs.seconds = {{"a", 0.10003}, {"c", 0.10003}};  // by 0.03 %, which nobody would notice
  runs.run_noise = 1e-3;
  verify(answer, runs.options(1000));
  EXPECT_EQ(answer.verified->end, VerifyEnd::kAlike);
  EXPECT_EQ(answer.ranking[answer.chosen].method, "c");
  EXPECT_FALSE(answer.clear_winner);
  EXPECT_THAT(answer.reason, HasSubstr("differ by less than 0.2 % with certainty, and C is the simplest"));
}

TEST(Verify, WhatNobodyWouldNoticeIsNoReasonToLeave) {
  Answer answer = answer_of(2);
  answer.ranking[0].messages = 3;
  MadeRuns runs;  // without noise: b is the faster with certainty, and so is that nobody would notice
  runs.seconds = {{"a", 0.10005}};
  verify(answer, runs.options(1000));
  EXPECT_EQ(answer.verified->end, VerifyEnd::kAlike);
  EXPECT_EQ(answer.ranking[answer.chosen].method, "a");
}

TEST(Verify, ARoundThatWouldEndAfterTheBudgetIsNotBegun) {
  Answer answer = answer_of(2);
  MadeRuns runs;
  runs.run_noise = 0.1;
  verify(answer, runs.options(7.5));
  EXPECT_THAT(runs.order, SizeIs(6));
  EXPECT_EQ(answer.verified->end, VerifyEnd::kBudget);
  EXPECT_EQ(answer.verified->rounds, 3);
  EXPECT_FALSE(answer.clear_winner);
  EXPECT_THAT(answer.reason, HasSubstr("budget ended before the order was certain"));
}

TEST(Verify, ABudgetThatEndsInTheFirstRoundLeavesWhatWasMeasured) {
  Answer answer = answer_of(3);
  MadeRuns runs;
  runs.seconds = {{"a", 0.12}, {"b", 0.11}};
  verify(answer, runs.options(1.5));
  EXPECT_THAT(runs.order, ElementsAre("a", "b"));
  EXPECT_THAT(methods_of(answer), ElementsAre("b", "a", "c"));
  EXPECT_EQ(answer.chosen, 0U);
  EXPECT_NEAR(entry_of(answer, "a").measured->behind, 0.12 / 0.11 - 1, 1e-9);
  EXPECT_EQ((std::pair{answer.verified->plans, answer.verified->rounds}), std::pair(2, 0));
  EXPECT_EQ(answer.verified->end, VerifyEnd::kBudget);
}

TEST(Verify, OnePlanIsRunHoweverSmallTheBudget) {
  Answer answer = answer_of(3);
  MadeRuns runs;
  VerifyOptions options = runs.options(1);
  double now = 0;
  options.clock = [&now] { return Seconds{now += 10}; };  // spent before anything could be begun
  verify(answer, options);
  EXPECT_THAT(runs.order, ElementsAre("a"));
  EXPECT_EQ(answer.ranking[answer.chosen].method, "a");
}

TEST(Verify, APlanThatFailsComesBehindAndTheRestGoesOn) {
  Answer answer = answer_of(4);
  answer.ranking[3].doubt->low = Seconds{0.2};
  MadeRuns runs;
  runs.fails_in_run["a"] = 2;  // after it was fast once
  runs.seconds = {{"a", 0.05}, {"b", 0.11}, {"c", 0.1}};
  verify(answer, runs.options(1000));
  EXPECT_THAT(methods_of(answer), ElementsAre("c", "b", "a", "d"));
  EXPECT_EQ(entry_of(answer, "a").failure, "a failed");
  EXPECT_FALSE(entry_of(answer, "a").measured);
  EXPECT_EQ(answer.ranking[answer.chosen].method, "c");
  EXPECT_TRUE(answer.clear_winner);
  EXPECT_THAT(runs.order, ElementsAre("a", "b", "c", "c", "b", "a", "b", "c"));
  EXPECT_THAT(answer.reason, HasSubstr("of those that could be run"));
}

TEST(Verify, WhereNoPlanCanBeRunItSaysWhy) {
  Answer answer = answer_of(2);
  MadeRuns runs;
  runs.fails_in_run = {{"a", 1}, {"b", 1}};
  try {
    verify(answer, runs.options(1000));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kPeerLost);
    EXPECT_STREQ(error.what(), "a failed");
  }
  EXPECT_THAT(runs.order, ElementsAre("a", "b"));
  EXPECT_FALSE(answer.verified);
}

TEST(Verify, AnInterruptionAndAFullDiskAreNoPlansFault) {
  for (const ErrorCode code : {ErrorCode::kInterrupted, ErrorCode::kStorage}) {
    Answer answer = answer_of(2);
    MadeRuns runs;
    runs.failure = code;
    runs.fails_in_run["b"] = 1;
    try {
      verify(answer, runs.options(1000));
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code);
    }
    EXPECT_THAT(runs.order, ElementsAre("a", "b"));
    EXPECT_FALSE(answer.verified);
    EXPECT_FALSE(answer.ranking[0].measured);
  }
}

TEST(Verify, ARunThatMeasuredNothingHasFailed) {
  Answer answer = answer_of(2);
  const VerifyOptions options{
      {2, Seconds{10}},
      [](const Plan& plan) { return std::vector<Seconds>(plan.method == "a" ? 0 : 1, Seconds{0.1}); },
      [] { return Seconds{0}; }};
  verify(answer, options);
  EXPECT_NE(entry_of(answer, "a").failure, "");
  EXPECT_EQ(answer.ranking[answer.chosen].method, "b");
}

TEST(Verify, TheHalfWidthIsTheScatterFromRunToRun) {
  // The turns of a are runs 0, 3 and 4, which take 100, 103 and 104 ms an iteration. The logarithms have a
  // standard error of 1.18 %; t(2) is 4.303, so the half width is 5.08 % of 103 ms.
  Answer answer = answer_of(2);
  MadeRuns runs;
  runs.drift = 0.01;
  verify(answer, runs.options(6));
  EXPECT_NEAR(entry_of(answer, "a").measured->median.count(), 0.103, 1e-9);
  EXPECT_NEAR(entry_of(answer, "a").measured->half_width.count(), 0.00523, 1e-5);
}

TEST(Verify, RefusesLimitsThatMakeNoSense) {
  Answer answer = answer_of(2);
  MadeRuns runs;
  EXPECT_THROW(verify(answer, runs.options(10, 1)), Error);
  EXPECT_THROW(verify(answer, runs.options(0)), Error);
  EXPECT_THROW(verify(answer, runs.options(std::nan(""))), Error);
  EXPECT_THAT(runs.order, SizeIs(0));
}

TEST(Verify, SaysWhatWasMeasuredAndWhatChanged) {
  Answer answer = answer_of(3);
  MadeRuns runs;
  runs.seconds = {{"a", 0.11}, {"b", 0.1}, {"c", 0.12}};
  verify(answer, runs.options(1000));
  EXPECT_THAT(
      answer.reason,
      HasSubstr("Measured 3 plans in 3 rounds (9.00 s): B 100 ms, A 110 ms (+10.0 %), C 120 ms "
                "(+20.0 %). B is the fastest with certainty, where prediction had chosen A; by the model "));
  const nlohmann::json json = to_json(answer);
  EXPECT_EQ(json.at("verified"), nlohmann::json({{"plans", 3},
                                                 {"rounds", 3},
                                                 {"seconds", 9.0},
                                                 {"certain", true},
                                                 {"end", "one_left"},
                                                 {"predicted", "a"},
                                                 {"changed", true}}));
  EXPECT_EQ(json.at("chosen"), "b");
  EXPECT_DOUBLE_EQ(json.at("ranking")[1].at("measured_seconds").get<double>(), 0.11);
  EXPECT_NEAR(json.at("ranking")[1].at("measured").at("behind_ratio").get<double>(), 0.1, 1e-9);
  EXPECT_EQ(json.at("ranking")[1].at("measured").at("iterations"), 15);
}

TEST(Verify, TakesAnAnswerAsItIs) {
  TuneOptions options;
  options.draws = 0;
  Answer answer = tune(*shipped_profile("resnet50"), made_cluster(4, 200e-6, 8e-9), options);
  MadeRuns runs;
  runs.seconds["bsp-a2a"] = 0.09;
  verify(answer, runs.options(1000));
  EXPECT_EQ(answer.ranking[answer.chosen].method, "bsp-a2a");
  EXPECT_TRUE(answer.clear_winner);
}

}  // namespace
}  // namespace commtune::tuner
