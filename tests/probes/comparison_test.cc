#include "probes/comparison.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "executor/transport/local/local.h"
#include "perfmodel/error.h"
#include "probes/bandwidth.h"
#include "probes/child_process.h"

namespace commtune::probes {
namespace {

TEST(ReadIperf3, TakesWhatArrivedAndTheRoundTrip) {
  const ToolResult result = read_iperf3(
      R"({"end": {"streams": [{"sender": {"mean_rtt": 412}}], "sum_received": {"bits_per_second": 8e8}}})");
  EXPECT_EQ(result.problem, "");
  EXPECT_DOUBLE_EQ(result.bytes_per_second, 1e8);
  EXPECT_NEAR(result.round_trip->count(), 412e-6, 1e-12);
}

TEST(ReadIperf3, NamesTheProblem) {
  EXPECT_EQ(read_iperf3(R"({"error": "unable to connect"})").problem, "unable to connect");
  EXPECT_THAT(read_iperf3("").problem, testing::HasSubstr("no JSON"));
  EXPECT_THAT(read_iperf3("[1]").problem, testing::HasSubstr("no JSON"));
  EXPECT_THAT(read_iperf3(R"({"end": {}})").problem, testing::HasSubstr("bits_per_second"));
  EXPECT_THAT(read_iperf3(R"({"end": 3})").problem, testing::HasSubstr("bits_per_second"));
}

TEST(ToolResult, SurvivesJson) {
  ToolResult result;
  result.tool = "iperf3";
  result.source = 1;
  result.destination = 0;
  result.from = "b";
  result.to = "a";
  result.bytes_per_second = 1.2e8;
  result.round_trip = Seconds{5e-4};
  const ToolResult again = tool_result_from_json(to_json(result));
  EXPECT_EQ(to_json(again), to_json(result));
  EXPECT_EQ(again.from, "b");
  EXPECT_EQ(again.round_trip, result.round_trip);
  EXPECT_THROW(tool_result_from_json({{"tool", 3}}), Error);
}

TEST(ComparisonOptions, AreRefusedByName) {
  ComparisonOptions options;
  options.port = 0;
  EXPECT_THROW(options.check(), Error);
  options = {};
  options.duration = Seconds{0.1};
  EXPECT_THROW(options.check(), Error);
}

TEST(CompareWithTools, SaysWhenThereIsNoLink) {
  auto transports = make_local_transports(2, {.ranks_per_host = 2});
  const auto results = compare_with_tools(*transports[0]);
  ASSERT_FALSE(results.empty());
  EXPECT_THAT(results[0].problem, testing::HasSubstr("one host"));
}

TEST(CompareWithTools, NamesTheHostWhereTheToolIsMissing) {
  auto transports = make_local_transports(2);
  ComparisonOptions options;
  options.program = "no-such-iperf3";
  std::vector<ToolResult> results, others;
  {
    const std::jthread second([&] { others = compare_with_tools(*transports[1], options); });
    results = compare_with_tools(*transports[0], options);
  }
  EXPECT_TRUE(others.empty());
  ASSERT_GE(results.size(), 2U);
  // Each direction's server is started first, on the receiving host.
  EXPECT_THAT(results[0].problem,
              testing::AllOf(testing::HasSubstr("does not start on host local1"),
                             testing::HasSubstr("no-such-iperf3"), testing::HasSubstr("package iperf3")));
  EXPECT_THAT(results[1].problem, testing::HasSubstr("does not start on host local0"));
  EXPECT_EQ(results[0].from, "local0");
  EXPECT_EQ(results[0].to, "local1");
}

TEST(ChildProcess, HandsOverWhatWasWritten) {
  ChildProcess child({"echo", "hello"});
  EXPECT_EQ(child.wait(Clock::now() + std::chrono::seconds(200)), "hello\n");
}

TEST(ChildProcess, IsNotWaitedForBeyondTheDeadline) {
  ChildProcess child({"sleep", "60"});
  EXPECT_FALSE(child.wait(Clock::now() + std::chrono::milliseconds(10)).has_value());
}

TEST(ChildProcess, SaysThatAProgramIsMissing) {
  EXPECT_THROW(ChildProcess({"no-such-program-anywhere"}), Error);
}

TEST(BusFactor, IsThatOfNcclTests) {
  EXPECT_DOUBLE_EQ(bus_factor(AllToAll{}, Operation::kAllReduce, 4), 1.5);
  EXPECT_DOUBLE_EQ(bus_factor(AllToAll{}, Operation::kAllGather, 4), 0.75);
  // One server on a host: three answers leave through its card.
  EXPECT_DOUBLE_EQ(bus_factor(ParameterServer{1}, Operation::kPushPull, 4), 3);
  // 1 MB in 12 ms through a ring of 4: 83.3 MB/s, 125 MB/s on the wire.
  const Bandwidth ring = bandwidth(AllToAll{}, Operation::kAllReduce, 4, Bytes{1'000'000}, Seconds{12e-3});
  EXPECT_NEAR(ring.algorithm, 83.33e6, 1e4);
  EXPECT_NEAR(ring.bus, 125e6, 1e4);
}

}  // namespace
}  // namespace commtune::probes
