#include "probes/tools/comparison.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "executor/transport/local/local.h"
#include "perfmodel/base/error.h"
#include "probes/tools/child_process.h"

namespace commtune::probes {
namespace {

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

/// By two hosts, each of whose ranks has options of its own.
std::vector<ToolResult> compared(const ComparisonOptions& first, const ComparisonOptions& second) {
  auto transports = make_local_transports(2);
  std::vector<ToolResult> results, others;
  {
    const std::jthread other([&] { others = compare_with_tools(*transports[1], second); });
    results = compare_with_tools(*transports[0], first);
  }
  EXPECT_TRUE(others.empty());
  return results;
}

/// Without tools.
ComparisonOptions nothing_installed() {
  ComparisonOptions options;
  options.program = "no-such-iperf3";
  options.rdma_program = "no-such-ib_write_bw";
  options.latency_program = "no-such-ib_write_lat";
  options.rdma_devices = "/no/such/folder";
  return options;
}

/// The same on a host with an RDMA device, as the kernel shows it.
class RdmaHost {
 public:
  RdmaHost() : folder_(std::filesystem::path(testing::TempDir()) / ("rdma" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_ / "rxe0" / "ports" / "1");
    std::ofstream(folder_ / "rxe0" / "ports" / "1" / "state") << "4: ACTIVE\n";
  }
  ~RdmaHost() { std::filesystem::remove_all(folder_); }
  RdmaHost(const RdmaHost&) = delete;
  RdmaHost& operator=(const RdmaHost&) = delete;
  ComparisonOptions options() const {
    ComparisonOptions options = nothing_installed();
    options.rdma_devices = folder_;
    return options;
  }

 private:
  std::filesystem::path folder_;
};

TEST(CompareWithTools, KeepsRanksThatDoNotTakePartUntilItEnds) {
  auto transports = make_local_transports(3);
  const auto compare = [&](std::size_t rank) {
    return std::async(std::launch::async,
                      [&, rank] { return compare_with_tools(*transports[rank], nothing_installed()); });
  };
  auto other = compare(1), third = compare(2);
  EXPECT_EQ(third.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  EXPECT_EQ(compare(0).get().size(), 2U);
  EXPECT_TRUE(other.get().empty());
  EXPECT_TRUE(third.get().empty());
}

TEST(CompareWithTools, MeasuresRdmaWhereBothHostsHaveADevice) {
  const RdmaHost host;
  const auto results = compared(host.options(), host.options());
  ASSERT_EQ(results.size(), 6U);
  EXPECT_EQ(results[2].tool, "ib_write_bw");
  EXPECT_EQ(results[2].from, "local0");
  EXPECT_THAT(results[2].problem, testing::AllOf(testing::HasSubstr("does not start on host local1"),
                                                 testing::HasSubstr("package perftest")));
  EXPECT_EQ(results[3].from, "local1");
  EXPECT_EQ(results[4].tool, "ib_write_lat");
  EXPECT_THAT(results[4].problem, testing::HasSubstr("no-such-ib_write_lat"));
}

TEST(CompareWithTools, NamesTheHostWithoutARdmaDevice) {
  const RdmaHost host;
  const auto results = compared(host.options(), nothing_installed());
  ASSERT_EQ(results.size(), 3U);
  EXPECT_EQ(results[2].tool, "ib_write_bw");
  EXPECT_EQ(results[2].problem, "host local1 has no RDMA device with an active port");
  EXPECT_EQ(compared(nothing_installed(), host.options()).at(2).problem,
            "host local0 has no RDMA device with an active port");
}

TEST(CompareWithTools, NamesTheHostWhereTheToolIsMissing) {
  const std::vector<ToolResult> results = compared(nothing_installed(), nothing_installed());
  ASSERT_EQ(results.size(), 2U) << "nothing of RDMA where no host has a device";
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

}  // namespace
}  // namespace commtune::probes
