#include "probes/tools/peer_tool.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "perfmodel/base/error.h"

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

// As perftest 4.5 prints it with --report_gbits, shortened.
const char* const kWriteBandwidth = R"(
 Dual-port       : OFF		Device         : rxe0
 Mtu             : 1024[B]
---------------------------------------------------------------------------------------
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 65536      1310             0.00               1.37   		   0.002617
---------------------------------------------------------------------------------------
)";

TEST(ReadIbWriteBw, TakesTheAverage) {
  const ToolResult result = read_ib_write_bw(kWriteBandwidth);
  EXPECT_EQ(result.problem, "");
  EXPECT_NEAR(result.bytes_per_second, 1.37e9 / 8, 1);
}

TEST(ReadIbWriteBw, NamesTheProblem) {
  EXPECT_THAT(read_ib_write_bw("").problem, testing::HasSubstr("BW average"));
  EXPECT_THAT(read_ib_write_bw(" #bytes #iterations BW average[Gb/sec]\n 65536 5\n").problem,
              testing::HasSubstr("BW average"));
  EXPECT_THAT(read_ib_write_bw(" #bytes BW average[Gb/sec]\n 65536 nothing\n").problem,
              testing::HasSubstr("BW average"));
}

// As perftest 4.5 prints it with -D.
const char* const kWriteLatency = R"(
 Dual-port       : OFF		Device         : rxe0
---------------------------------------------------------------------------------------
 #bytes        #iterations       t_avg[usec]    tps average
 8             18342           27.25          18349.20
---------------------------------------------------------------------------------------
)";

TEST(ReadIbWriteLat, DoublesTheWayThere) {
  const ToolResult result = read_ib_write_lat(kWriteLatency);
  EXPECT_EQ(result.problem, "");
  ASSERT_TRUE(result.round_trip);
  EXPECT_NEAR(result.round_trip->count(), 54.5e-6, 1e-12);
  EXPECT_EQ(result.bytes_per_second, 0);
}

TEST(ReadIbWriteLat, NamesTheProblem) {
  EXPECT_THAT(read_ib_write_lat("").problem, testing::HasSubstr("t_avg[usec]"));
  EXPECT_THAT(read_ib_write_lat(kWriteBandwidth).problem, testing::HasSubstr("t_avg[usec]"));
}

TEST(RdmaDeviceOf, IsTheCardThatATransportHas) {
  EXPECT_EQ(rdma_device_of({}), std::nullopt);
  EXPECT_EQ(rdma_device_of({.what = {{"card_mlx5_0_1", "RoCE v2"}}, .releases = {}}), "mlx5_0");
  EXPECT_EQ(rdma_device_of({.what = {{"card_", ""}, {"cards", ""}}, .releases = {}}), std::nullopt);
}

TEST(ActiveRdmaDevice, IsTheFirstWithAnActivePort) {
  const auto folder = std::filesystem::path(testing::TempDir()) / ("devices" + std::to_string(::getpid()));
  const auto add = [&](const std::string& device, const std::string& port, const std::string& state) {
    std::filesystem::create_directories(folder / device / "ports" / port);
    std::ofstream(folder / device / "ports" / port / "state") << state << "\n";
  };
  EXPECT_EQ(active_rdma_device(folder), std::nullopt);
  add("mlx5_0", "1", "1: DOWN");
  EXPECT_EQ(active_rdma_device(folder), std::nullopt);
  add("mlx5_2", "1", "4: ACTIVE");
  add("mlx5_1", "1", "1: DOWN");
  add("mlx5_1", "2", "4: ACTIVE");
  EXPECT_EQ(active_rdma_device(folder), "mlx5_1");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace commtune::probes
