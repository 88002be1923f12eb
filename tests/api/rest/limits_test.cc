// What one client may take of the service: time to compute. The service is asked without its sockets, by a
// made-up clock.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "api/rest/service.h"
#include "perfmodel/synthetic_profile.h"
#include "tests/api/rest/made_lab.h"
#include "tests/store/support.h"

namespace commtune::api::rest {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

Profile small_profile(int layers = 2) {
  return synthetic_profile(layers, Bytes{1 << 20}, Seconds{1e-3}, Seconds{2e-3});
}

/// Goes on by a millisecond whenever it is read, until it is told to stand still.
struct MadeClock {
  std::atomic<int> readings{0};
  std::atomic<bool> runs{true};
  std::chrono::steady_clock::time_point now() {
    return std::chrono::steady_clock::time_point{} +
           std::chrono::milliseconds(runs ? readings.fetch_add(1) : readings.load());
  }
};

class LimitsTest : public ::testing::Test {
 protected:
  LimitsTest() : log_(false, [](std::string_view) {}), store_(std::make_unique<Store>(made_store())) {}
  ~LimitsTest() override {
    if (service_) service_->stop();
  }

  void start() {
    service_ = std::make_unique<Service>(ServiceParts{options_, settings_, environment_, "/bin/false", log_,
                                                      "ct_start_1", [this] { return clock_.now(); }},
                                         std::move(*store_));
  }

  Reply ask(const std::string& method, const std::string& target, const json& body = nullptr) {
    const std::string text = body.is_null() ? std::string() : body.dump();
    Head head;
    head.method = method;
    head.target = target;
    head.address = "127.0.0.1";
    head.content_length = text.size();
    head.header = [](const char* name) -> std::string {
      const std::map<std::string, std::string> headers{{"Host", "127.0.0.1"},
                                                       {"Content-Type", "application/json"}};
      const auto found = headers.find(name);
      return found == headers.end() ? std::string() : found->second;
    };
    auto reply = service_->without_body(head);
    return reply ? std::move(*reply) : service_->with_body(head, text);
  }
  std::size_t rows(const std::string& target) {
    return json::parse(ask("GET", target + "?limit=1000").body).at("rows").size();
  }
  static json question(int seed) {
    return {{"model", "1"}, {"cluster", "lab"}, {"draws", 2}, {"seed", seed}};
  }

  Store made_store() const {
    Store store = Store::open(folder_ / "store.db", {.version = "test"});
    make_lab(store, small_profile());
    return store;
  }

  const testing::TempFolder folder_;
  ServeOptions options_;
  const Settings settings_{};
  const Environment environment_{};
  Log log_;
  MadeClock clock_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Service> service_;  // last: it uses what is above
};

/// Questions that would compute for too long.
class HostileQuestion : public LimitsTest {
 protected:
  void start_with(std::chrono::milliseconds plan_time) {
    options_.plan_time = plan_time;
    start();
  }
};

TEST_F(HostileQuestion, IsRefusedWhereThereIsNoPlanInTime) {
  start_with(std::chrono::milliseconds(1));
  const Reply reply = ask("POST", "/v1/plans", question(1));
  EXPECT_EQ(reply.status, 503) << reply.body;
  EXPECT_EQ(json::parse(reply.body).at("code"), "timeout");
  EXPECT_THAT(reply.headers, ::testing::Contains(std::pair<std::string, std::string>("Retry-After", "1")));
  EXPECT_EQ(rows("/v1/plans"), 1U) << "the lab's";
}

TEST_F(HostileQuestion, IsAnsweredWithTheBestSoFarWhichIsNeverGivenAgain) {
  start_with(std::chrono::milliseconds(12));
  const Reply first = ask("POST", "/v1/plans", question(1));
  ASSERT_EQ(first.status, 201) << first.body;
  const json said = json::parse(first.body);
  EXPECT_EQ(said.at("status"), "planned");
  EXPECT_FALSE(said.at("complete"));
  EXPECT_THAT(said.at("notes").dump(), HasSubstr("incomplete"));
  EXPECT_TRUE(said.at("iteration").at("low_seconds").is_null());
  const json again = json::parse(ask("POST", "/v1/plans", question(1)).body);
  EXPECT_FALSE(again.at("complete"));
  EXPECT_FALSE(again.at("cached"));
  EXPECT_NE(again.at("id"), said.at("id"));

  clock_.runs = false;  // now there is time enough
  const Reply whole = ask("POST", "/v1/plans", question(1));
  EXPECT_EQ(whole.status, 201) << "what is stored of an incomplete answer is not taken for this one";
  EXPECT_TRUE(json::parse(whole.body).at("complete"));
  EXPECT_TRUE(json::parse(ask("POST", "/v1/plans", question(1)).body).at("cached"));
}

TEST_F(HostileQuestion, ThatIsAskedInPartsHasTheTimeOfOne) {
  start_with(std::chrono::milliseconds(12));
  json parts = question(1);
  parts["candidates"] = {
      {{"name", "four"}}, {{"name", "two"}, {"workers", 2}}, {{"name", "three"}, {"workers", 3}}};
  const Reply reply = ask("POST", "/v1/plans", parts);
  ASSERT_EQ(reply.status, 200) << reply.body;
  const json candidates = json::parse(reply.body).at("candidates");
  EXPECT_FALSE(candidates.at(0).at("answer").at("complete"));
  for (const std::size_t late : {1, 2}) {
    EXPECT_EQ(candidates.at(late).at("answer").at("status"), "unknown");
    EXPECT_EQ(candidates.at(late).at("answer").at("code"), "timeout");
  }
  EXPECT_EQ(json::parse(reply.body).at("best"), "four");
}

TEST_F(HostileQuestion, ForAMethodThatIsMadeAgainHasALimitToo) {
  clock_.runs = false;
  start_with(std::chrono::milliseconds(5));
  const json made = json::parse(ask("POST", "/v1/plans", question(1)).body);
  const std::string target = fmt::format("/v1/plans/{}/timeline?method={}", made.at("id").get<RowId>(),
                                         made.at("method") == "bsp-a2a" ? "mg-wfbp" : "bsp-a2a");
  EXPECT_EQ(ask("GET", target).status, 200);
  clock_.runs = true;
  options_.plan_time = std::chrono::milliseconds(1);
  EXPECT_EQ(ask("GET", target).status, 503);
}

TEST(ServeOptions, LimitsHaveToMakeSense) {
  ServeOptions options;
  options.plan_time = std::chrono::milliseconds(0);
  EXPECT_THAT(testing::error_of([&] { options.check(); }),
              testing::IsError(ErrorCode::kBadInput, "--plan-time 0 ms"));
}

}  // namespace
}  // namespace commtune::api::rest
