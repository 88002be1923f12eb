#include "api/view/predicted_trace.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "perfmodel/base/error.h"

namespace commtune::api {
namespace {

/// One layer: 2 ms backward, 1 ms forward.
Profile one_layer() {
  Profile profile;
  profile.model = "one";
  profile.origin.how = "derived";
  profile.layers = {{"a", Seconds{1e-3}, Seconds{2e-3}, Seconds{0}, {{"a.weight", Bytes{40}}}, 0}};
  return profile;
}

Plan whole_message(const Profile& profile) {
  Plan plan;
  plan.method = "wfbp";
  plan.model = profile.model;
  plan.profile = digest(profile);
  plan.workers = 1;
  plan.messages = {{{{0, Bytes{0}, Bytes{40}}}}};
  plan.priority = {0};
  return plan;
}

/// In microseconds; times are kept as whole nanoseconds.
struct Span {
  double begin = 0, length = 0;
};
void expect_span(const Span& span, double begin, double length) {
  EXPECT_NEAR(span.begin, begin, 0.01);
  EXPECT_NEAR(span.length, length, 0.01);
}

class PredictedTrace : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("commtune-predicted-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    // One measured event, 5 ms after the ranks' common zero.
    std::ofstream(folder_ / "all_ranks.json")
        << R"({"traceEvents": [{"ph": "X", "name": "backward a", "pid": 0, "tid": 0, "ts": 5000, "dur": 1}]})";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  nlohmann::json read(const std::string& name) const {
    std::ifstream file(folder_ / name);
    return nlohmann::json::parse(file);
  }
  std::map<std::string, Span> predicted_for(const Cluster& cluster) const {
    const Profile profile = one_layer();
    add_predicted_trace(folder_, whole_message(profile), profile, cluster);
    std::map<std::string, Span> events;
    const nlohmann::json trace = read("predicted.json");
    for (const nlohmann::json& event : trace.at("traceEvents")) {
      if (event.at("ph") == "X") events[event.at("name")] = {event.at("ts"), event.at("dur")};
    }
    return events;
  }

  std::filesystem::path folder_;
};

/// One worker sends nothing, so that its layers follow each other.
TEST_F(PredictedTrace, BeginsWhereTheMeasuredOneDoesAndStandsBesideIt) {
  Cluster cluster;
  cluster.hosts = {{"h", 1}};
  const auto events = predicted_for(cluster);
  expect_span(events.at("backward a"), 5000, 2000);
  expect_span(events.at("forward a"), 7000, 1000);
  EXPECT_GT(read("all_ranks.json").at("traceEvents").size(), 1U);
}

TEST_F(PredictedTrace, LayersLastAsLongAsOnTheSlowestHost) {
  Cluster cluster;
  cluster.hosts = {{"h", 1, {1, 1, 1.5}}};
  const auto events = predicted_for(cluster);
  expect_span(events.at("backward a"), 5000, 3000);
  expect_span(events.at("forward a"), 8000, 1500);
}

TEST_F(PredictedTrace, SaysWhichFileItCannotRead) {
  std::filesystem::remove(folder_ / "all_ranks.json");
  try {
    predicted_for(Cluster{});
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kStorage);
    EXPECT_NE(std::string(error.what()).find("all_ranks.json: cannot be read"), std::string::npos);
  }
}

}  // namespace
}  // namespace commtune::api
