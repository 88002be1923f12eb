#include "probes/tools/peer_tool.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>
#include <utility>

#include "perfmodel/base/json_reader.h"

namespace commtune::probes {

namespace {

std::string whole_seconds(Seconds duration) {
  return std::to_string(std::max(1L, std::lround(duration.count())));
}

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

bool has_active_port(const std::filesystem::path& device) {
  std::error_code ignored;
  for (const auto& port : std::filesystem::directory_iterator(device / "ports", ignored)) {
    std::ifstream file(port.path() / "state");
    std::string state;
    if (std::getline(file, state) && state.find("ACTIVE") != std::string::npos) return true;
  }
  return false;
}

}  // namespace

ToolResult problem_of(const std::string& tool, const std::string& text) {
  ToolResult result;
  result.tool = tool;
  result.problem = text;
  return result;
}

nlohmann::json to_json(const ToolResult& result) {
  return {{"tool", result.tool},
          {"source", result.source},
          {"destination", result.destination},
          {"from", result.from},
          {"to", result.to},
          {"bytes_per_second", result.bytes_per_second},
          {"round_trip_seconds", result.round_trip.value_or(Seconds{0}).count()},
          {"problem", result.problem}};
}

ToolResult tool_result_from_json(const nlohmann::json& json) {
  // Beyond these a text is no result: ranks, bytes per second, seconds.
  constexpr int kMostRanks = 1'000'000;
  constexpr double kMostRate = 1e15, kLongest = 1e6;
  const JsonPlace place(json);
  ToolResult result;
  result.tool = place["tool"].name();
  result.source = static_cast<int>(place["source"].signed_integer(0, kMostRanks));
  result.destination = static_cast<int>(place["destination"].signed_integer(0, kMostRanks));
  result.from = place["from"].text();
  result.to = place["to"].text();
  result.bytes_per_second = place["bytes_per_second"].number(0, kMostRate);
  const double trip = place["round_trip_seconds"].number(0, kLongest);
  if (trip > 0) result.round_trip = Seconds{trip};
  result.problem = place["problem"].text();
  return result;
}

PeerTool iperf3(const std::string& program, int port, Seconds duration) {
  const std::string at = std::to_string(port);
  return {"iperf3",
          "iperf3",
          {program, "--server", "--one-off", "--port", at},
          {program, "--port", at, "--time", whole_seconds(duration), "--json", "--client"},
          read_iperf3};
}

// A margin of 2 s at either end does not count unless told: of short transfers nothing would be left.
PeerTool ib_write_bw(const std::string& program, const std::string& device, int port, Seconds duration) {
  const std::string at = std::to_string(port), seconds = whole_seconds(duration);
  const std::vector<std::string> both{program, "-d", device,          "-p", at, "-D", seconds, "-f",
                                      "0",     "-F", "--report_gbits"};
  return {"ib_write_bw", "perftest", both, both, read_ib_write_bw};
}

PeerTool ib_write_lat(const std::string& program, const std::string& device, int port, Seconds duration) {
  constexpr const char* kSize = "8";
  const std::string at = std::to_string(port), seconds = whole_seconds(duration);
  const std::vector<std::string> both{program, "-d", device,  "-p", at,  "-s",
                                      kSize,   "-D", seconds, "-f", "0", "-F"};
  return {"ib_write_lat", "perftest", both, both, read_ib_write_lat};
}

ToolResult read_iperf3(const std::string& text) {
  ToolResult result;
  result.tool = "iperf3";
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return problem_of(result.tool, "its output is no JSON");
  if (json.contains("error")) {
    return problem_of(result.tool, json["error"].is_string() ? json["error"].get<std::string>() : "unknown");
  }
  const nlohmann::json rate = json.value("/end/sum_received/bits_per_second"_json_pointer, nlohmann::json());
  if (!rate.is_number() || rate.get<double>() <= 0) {
    return problem_of(result.tool, "its output has no end.sum_received.bits_per_second");
  }
  result.bytes_per_second = rate.get<double>() / 8;
  const nlohmann::json trip = json.value("/end/streams/0/sender/mean_rtt"_json_pointer, nlohmann::json());
  if (trip.is_number() && trip.get<double>() > 0) result.round_trip = Seconds{trip.get<double>() * 1e-6};
  return result;
}

namespace {

/// perftest's table: a line of column names, and below it one of numbers.
///
/// column   its name
/// no_name  a word that only goes before another in names of two words
/// returns  0 where there is none
double number_in(const std::string& text, const std::string& column, const std::string& no_name) {
  std::istringstream lines(text);
  std::vector<std::string> names;
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string> words = words_of(line);
    std::erase(words, no_name);
    if (!words.empty() && words.front() == "#bytes") {
      names = std::move(words);
      continue;
    }
    const auto found = std::ranges::find(names, column);
    if (found == names.end() || words.size() != names.size()) continue;
    return std::strtod(words[static_cast<std::size_t>(found - names.begin())].c_str(), nullptr);
  }
  return 0;
}

}  // namespace

ToolResult read_ib_write_bw(const std::string& text) {
  constexpr double kBytesPerGigabit = 1e9 / 8;
  ToolResult result;
  result.tool = "ib_write_bw";
  result.bytes_per_second = kBytesPerGigabit * number_in(text, "average[Gb/sec]", "BW");
  if (!(result.bytes_per_second > 0))
    return problem_of(result.tool, "its output has no BW average[Gb/sec] above 0");
  return result;
}

ToolResult read_ib_write_lat(const std::string& text) {
  ToolResult result;
  result.tool = "ib_write_lat";
  const double one_way = 1e-6 * number_in(text, "t_avg[usec]", "tps");
  if (!(one_way > 0)) return problem_of(result.tool, "its output has no t_avg[usec] above 0");
  result.round_trip = Seconds{2 * one_way};
  return result;
}

std::optional<std::string> active_rdma_device(const std::string& folder) {
  std::error_code ignored;
  std::optional<std::string> first;
  for (const auto& device : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = device.path().filename();
    if (has_active_port(device.path()) && (!first || name < *first)) first = name;
  }
  return first;
}

std::optional<std::string> rdma_device_of(const EndFacts& facts) {
  constexpr std::string_view kCard = "card_";
  for (const auto& [name, what] : facts.what) {
    if (!name.starts_with(kCard)) continue;
    const std::size_t port = name.rfind('_');
    if (port >= kCard.size()) return name.substr(kCard.size(), port - kCard.size());
  }
  return std::nullopt;
}

}  // namespace commtune::probes
