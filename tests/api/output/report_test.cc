#include "api/output/report.h"

#include <gmock/gmock.h>

#include "api/view/outcome_json.h"
#include "probes/analysis/links.h"

namespace commtune::api {
namespace {

using testing::HasSubstr;
using testing::Not;

/// Two hosts whose links carry 0.125 and 0.1 GB/s, compared with a tool.
ProbeOutcome compared(std::vector<probes::ToolResult> tools) {
  ProbeOutcome outcome;
  outcome.cluster.name = "pair";
  outcome.cluster.hosts = {{"a", 1}, {"b", 1}};
  probes::LinkReport links;
  links.hosts = {"a", "b"};
  links.links = {{0, 1, Seconds{1e-4}, SecondsPerByte{8e-9}}, {1, 0, Seconds{1e-4}, SecondsPerByte{10e-9}}};
  outcome.links = probes::to_json(links);
  outcome.tools = std::move(tools);
  return outcome;
}

probes::ToolResult iperf3(int from, double bytes_per_second, const std::string& problem) {
  probes::ToolResult result;
  result.tool = "iperf3";
  result.source = from;
  result.destination = 1 - from;
  result.from = from == 0 ? "a" : "b";
  result.to = from == 0 ? "b" : "a";
  result.bytes_per_second = bytes_per_second;
  result.problem = problem;
  return result;
}

TEST(Comparison, StandsBesideWhatToolsSay) {
  // We: 1 / 8 ns = 0.125 GB/s, by 0.125 / 0.1 - 1 = 25 % more than the tool.
  const ProbeOutcome outcome = compared({iperf3(0, 1e8, ""), iperf3(1, 1e8, "")});
  const std::string text = probe_report(outcome);
  EXPECT_THAT(text, HasSubstr("a -> b"));
  EXPECT_THAT(text, HasSubstr("+25.0 %"));
  EXPECT_THAT(text, HasSubstr("+0.0 %"));
  EXPECT_FALSE(not_compared(outcome).has_value());
}

TEST(Comparison, SetsALatencyBesideOurs) {
  // A round trip of 160 us is 80 us one way; ours is 100 us, 25 % more.
  probes::ToolResult latency = iperf3(0, 0, "");
  latency.tool = "ib_write_lat";
  latency.round_trip = Seconds{160e-6};
  EXPECT_THAT(probe_report(compared({latency})),
              testing::ContainsRegex("a -> b +ib_write_lat +80[.0]* .+s +100[.0]* .+s +.25[.]0 %"));
}

TEST(Comparison, ShowsOurSideWhereAToolIsMissing) {
  const std::string problem = "it does not start on host b (iperf3: No such file or directory)";
  const ProbeOutcome outcome = compared({iperf3(0, 0, problem), iperf3(1, 0, problem)});
  const std::string text = probe_report(outcome);
  EXPECT_THAT(text, testing::ContainsRegex("a -> b +iperf3 +- +0.125 GB/s +-"));
  EXPECT_THAT(text, testing::ContainsRegex("b -> a +iperf3 +- +0.100 GB/s +-"));
  const auto first = text.find("iperf3 was not compared: " + problem);
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(text.find("was not compared", first + problem.size()), std::string::npos) << "said twice";
  EXPECT_EQ(not_compared(outcome), "iperf3: " + problem);
}

TEST(Comparison, IsMadeWhenOneDirectionIs) {
  const ProbeOutcome outcome = compared({iperf3(0, 1e8, ""), iperf3(1, 0, "it did not end in time")});
  EXPECT_FALSE(not_compared(outcome).has_value());
  EXPECT_THAT(probe_report(outcome), HasSubstr("it did not end in time"));
}

TEST(RunReportText, SaysThatNothingWasTrained) {
  RunOutcome outcome;
  outcome.report.model = "resnet50";
  const std::string text = run_report(outcome);
  EXPECT_THAT(text, testing::StartsWith("replay of resnet50"));
  EXPECT_THAT(text, HasSubstr("layers were waits"));
  EXPECT_THAT(text, HasSubstr("nothing was trained"));
  EXPECT_EQ(to_json(outcome).at("workload"), "replay");
  outcome.device = DeviceKind::kCuda;
  EXPECT_THAT(run_report(outcome), HasSubstr("layers were kernels of their length"));
}

TEST(Comparison, IsNothingWhereNoneWasAskedFor) {
  const ProbeOutcome outcome = compared({});
  EXPECT_FALSE(not_compared(outcome).has_value());
  EXPECT_THAT(probe_report(outcome), Not(HasSubstr("iperf3")));
}

TEST(ProbeReport, SaysWhatTheTimeWentInto) {
  ProbeOutcome outcome = compared({});
  EXPECT_THAT(probe_report(outcome), Not(HasSubstr("time:")));  // of ranks that do not say
  EXPECT_TRUE(to_json(outcome).at("budget_split").empty());
  outcome.budget_split = {{"survey_seconds", 0.25},     {"links_seconds", 0.5},
                          {"first_sizes_seconds", 2.0}, {"refinement_seconds", 1.0},
                          {"planning_seconds", 0.25},   {"rest_seconds", 0.125}};
  EXPECT_THAT(probe_report(outcome), HasSubstr("2.00 s for the first sizes of roads, 1.00 s to refine them, "
                                               "250 ms to plan on what was known by then"));
  EXPECT_EQ(to_json(outcome).at("budget_split"), outcome.budget_split);
}

TuneOutcome ranked(Seconds bound, std::optional<Seconds> bound_low) {
  TuneOutcome outcome;
  tuner::Entry entry;
  entry.title = "WFBP-A2A";
  outcome.answer.ranking.push_back(entry);
  outcome.answer.bound = bound;
  outcome.answer.bound_low = bound_low;
  return outcome;
}

TEST(RankingReport, SaysWhatTheBoundRestsOn) {
  const std::string text = ranking_report(ranked(Seconds{0.216}, Seconds{0.209}));
  EXPECT_THAT(text, HasSubstr("lower bound: 216 ms; 209 ms at the edge of the fits' doubt"));
  EXPECT_THAT(text, HasSubstr("under the fitted costs and over the roads priced"));
}

TEST(RankingReport, SaysWhereTheBatchIsUnknown) {
  TuneOutcome outcome = ranked(Seconds{0.216}, {});
  outcome.answer.model = "gpt2";
  outcome.answer.batch = 0;
  const std::string text = ranking_report(outcome);
  EXPECT_THAT(text, testing::StartsWith("gpt2 (batch unknown) on cluster"));
  EXPECT_THAT(text, testing::ContainsRegex("WFBP-A2A .* unknown "));
  outcome.answer.batch = 64;
  outcome.answer.ranking[0].samples_per_second = 1234.5;
  EXPECT_THAT(ranking_report(outcome), testing::AllOf(HasSubstr("(batch 64)"), HasSubstr(" 1,23")));
  outcome.answer.ranking[0].samples_per_second = 0.3641;
  EXPECT_THAT(ranking_report(outcome), HasSubstr(" 0.36 "));
}

TEST(RankingReport, PutsNoBoundBesidePlansThatCast) {
  TuneOutcome outcome = ranked(Seconds{0}, {});
  outcome.answer.wire = outcome.answer.ranking[0].plan.wire = WireFormat::kBfloat16;
  const std::string text = ranking_report(outcome);
  EXPECT_THAT(text, Not(HasSubstr("above bound")));
  EXPECT_THAT(text, Not(HasSubstr("lower bound")));
  EXPECT_THAT(text, HasSubstr("all-to-all ring, cast to bf16"));
  EXPECT_THAT(text,
              HasSubstr("gradients are cast to bf16 while they travel and summed in bf16: not lossless"));
}

RunOutcome cast_run(std::uint64_t on_one, std::uint64_t on_another) {
  RunOutcome outcome;
  outcome.report.wire = "fp16";
  outcome.report.iteration_seconds = {0.1, 0.1};
  outcome.report.ranks.resize(2);
  for (RankReport& rank : outcome.report.ranks) rank.sent_bytes = 4 << 20;
  outcome.report.ranks[0].overflows = on_one;
  outcome.report.ranks[1].overflows = on_another;
  return outcome;
}

TEST(RunReport, SaysWhatWasSentAndWhatOverflowed) {
  EXPECT_THAT(run_report(cast_run(0, 0)),
              HasSubstr("travelled as fp16: not lossless; rank 0 sent 2.0 MiB an iteration"));
  EXPECT_THAT(run_report(cast_run(0, 0)), Not(HasSubstr("warning")));
  // One rank's own gradients were infinite in 3 more elements.
  EXPECT_THAT(run_report(cast_run(5, 8)), HasSubstr("warning: 5 elements of finite gradients"));
}

TEST(RankingReport, MarksWhatRestsOnDoubtfulFits) {
  TuneOutcome outcome = ranked(Seconds{0.216}, {});
  outcome.answer.ranking[0].method = "wfbp-a2a";
  outcome.answer.ranking[0].prediction.iteration = Seconds{0.3};
  EXPECT_THAT(ranking_report(outcome), Not(HasSubstr("?")));
  outcome.answer.doubtful = {{"all-reduce, alone", {9, 0.95, 0.2, 0.5}, {"wfbp-a2a"}}};
  const std::string text = ranking_report(outcome);
  EXPECT_THAT(text, HasSubstr("300 ms ?"));
  EXPECT_THAT(text, HasSubstr("? rests on doubtful fits"));
  EXPECT_THAT(text, HasSubstr("all-reduce, alone: median residual 20.0 %, p90 50.0 %, R² 0.950"));
}

TEST(RankingReport, SaysThatATimeLimitLeftSomethingOut) {
  TuneOutcome outcome = ranked(Seconds{0.216}, {});
  EXPECT_THAT(ranking_report(outcome), Not(HasSubstr("incomplete")));
  outcome.answer.complete = false;
  EXPECT_THAT(ranking_report(outcome), HasSubstr("incomplete: the time limit passed"));
  EXPECT_EQ(to_json(outcome).at("complete"), false);
}

TEST(RankingReport, ShowsWhatWasMeasuredBesideThePrediction) {
  TuneOutcome outcome = ranked(Seconds{0.216}, {});
  outcome.answer.ranking.resize(3);
  outcome.answer.ranking[1].failure = "rank 2 went away";
  EXPECT_THAT(ranking_report(outcome), Not(HasSubstr("measured")));
  outcome.answer.ranking[0].measured = tuner::MeasuredTime{Seconds{0.3}, Seconds{0.004}, 60, 3, 0};
  const std::string text = ranking_report(outcome);
  EXPECT_THAT(text, HasSubstr("measured"));
  EXPECT_THAT(text, HasSubstr("300 ms ± 4.00 ms"));
  EXPECT_THAT(text, HasSubstr("failed"));
  EXPECT_THAT(text, HasSubstr(": rank 2 went away"));
}

TEST(RankingReport, SaysNothingOfADoubtThatChangesNothing) {
  for (const std::optional<Seconds> low : {std::optional<Seconds>{}, std::optional{Seconds{0.216}}})
    EXPECT_THAT(ranking_report(ranked(Seconds{0.216}, low)), Not(HasSubstr("edge")));
}

}  // namespace
}  // namespace commtune::api
