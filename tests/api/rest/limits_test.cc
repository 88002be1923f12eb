// What one client may take of the service: rows in its database, places among the waiting jobs, and time to
// compute. The service is asked without its sockets, by a made-up clock.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "api/actions/tokens.h"
#include "api/rest/service.h"
#include "store/jobs.h"
#include "store/owner.h"
#include "tests/api/rest/made_lab.h"
#include "tests/perfmodel/synthetic_profile.h"
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
  LimitsTest() : log_(false, [](std::string_view) {}), store_(std::make_unique<Store>(made_store())) {
    one_ = made_token("one");
    other_ = made_token("other");
  }
  ~LimitsTest() override {
    if (service_) service_->stop();
  }

  void start() {
    service_ = std::make_unique<Service>(ServiceParts{options_, settings_, environment_, "/bin/false", log_,
                                                      "ct_start_1", [this] { return clock_.now(); }},
                                         std::move(*store_));
  }

  Reply ask(const std::string& method, const std::string& target, const json& body = nullptr,
            const std::string& token = {}) {
    const std::string text = body.is_null() ? std::string() : body.dump();
    Head head;
    head.method = method;
    head.target = target;
    head.address = "127.0.0.1";
    head.client_gone = client_gone_;
    head.content_length = text.size();
    head.header = [&, token](const char* name) -> std::string {
      const std::map<std::string, std::string> headers{
          {"Host", "127.0.0.1"},
          {"Content-Type", "application/json"},
          {"Idempotency-Key", idempotency_key_},
          {"Authorization", token.empty() ? "" : "Bearer " + token}};
      const auto found = headers.find(name);
      return found == headers.end() ? std::string() : found->second;
    };
    auto reply = service_->without_body(head);
    return reply ? std::move(*reply) : service_->with_body(head, text);
  }
  int status(const std::string& target, const json& body, const std::string& token = {}) {
    return ask("POST", target, body, token).status;
  }
  /// Refused because of a quota that this flag sets.
  void refused(const std::string& target, const json& body, const std::string& token,
               const std::string& flag) {
    const Reply reply = ask("POST", target, body, token);
    ASSERT_EQ(reply.status, 429) << reply.body;
    const json problem = json::parse(reply.body);
    EXPECT_EQ(problem.at("code"), "quota_exceeded");
    EXPECT_EQ(problem.at("title"), "Quota used up");
    EXPECT_THAT(problem.at("detail").get<std::string>(), HasSubstr(flag));
  }
  std::size_t rows(const std::string& target) {
    return json::parse(ask("GET", target + "?limit=1000").body).at("rows").size();
  }
  static json question(int seed) {
    return {{"model", "1"}, {"cluster", "lab"}, {"draws", 2}, {"seed", seed}};
  }

  std::string made_token(const std::string& name) {
    return make_token(*store_, name, {"operate"}, {}).secret;
  }
  Store made_store() const {
    Store store = Store::open(folder_ / "store.db", {.version = "test"});
    make_lab(store, small_profile());
    return store;
  }

  const tests::TempFolder folder_;
  ServeOptions options_;
  const Settings settings_{};
  const Environment environment_{};
  Log log_;
  MadeClock clock_;
  std::function<bool()> client_gone_;
  std::string idempotency_key_;
  std::unique_ptr<Store> store_;
  std::string one_, other_;
  std::unique_ptr<Service> service_;  // last: it uses what is above
};

class HostileQuota : public LimitsTest {
 protected:
  HostileQuota() {
    options_.quotas = {.profiles = 2, .plans = 3, .runs = 2, .waiting_jobs = 1, .answers = 2};
  }
};

TEST_F(HostileQuota, NoMoreProfilesThanATokenMayStore) {
  start();
  const auto profile = [](int layers) { return commtune::to_json(small_profile(layers)); };
  EXPECT_EQ(status("/v1/profiles", profile(3), one_), 201);
  EXPECT_EQ(status("/v1/profiles", profile(4), one_), 201);
  refused("/v1/profiles", profile(5), one_, "--max-profiles-per-token");
  EXPECT_EQ(rows("/v1/profiles"), 3U) << "the lab's and two";
  EXPECT_EQ(status("/v1/profiles", profile(4), one_), 201) << "it is there already and costs nothing";
  EXPECT_EQ(status("/v1/profiles", profile(5), other_), 201) << "another token may";
  EXPECT_EQ(status("/v1/profiles", profile(6)), 201) << "and so may who has none";
}

TEST_F(HostileQuota, NoMorePlansThanATokenMayStore) {
  start();
  for (const int seed : {1, 2, 3}) EXPECT_EQ(status("/v1/plans", question(seed), one_), 201);
  refused("/v1/plans", question(4), one_, "--max-plans-per-token");
  EXPECT_EQ(rows("/v1/plans"), 4U) << "the lab's and three";
  EXPECT_EQ(status("/v1/plans", question(2), one_), 200) << "it is known already and costs nothing";
  json glance = question(4);
  glance["keep"] = "none";
  EXPECT_EQ(status("/v1/plans", glance, one_), 200) << "nothing is stored of it";
  EXPECT_EQ(status("/v1/plans", question(4), other_), 201);
}

TEST_F(HostileQuota, ARankingThatWouldNotFitIsNotStoredInParts) {
  start();
  json all = question(1);
  all["keep"] = "all";
  refused("/v1/plans", all, one_, "--max-plans-per-token");
  EXPECT_EQ(rows("/v1/plans"), 1U) << "the lab's";
}

TEST_F(HostileQuota, AQuestionsOwnProfileCountsAsOne) {
  start();
  for (const int batch : {11, 12}) {
    json changed = question(1);
    changed["overrides"] = {{"batch", batch}};
    EXPECT_EQ(status("/v1/plans", changed, one_), 201);
  }
  json changed = question(1);
  changed["overrides"] = {{"batch", 13}};
  refused("/v1/plans", changed, one_, "--max-profiles-per-token");
}

TEST_F(HostileQuota, AllWhoHaveNoTokenShareOne) {
  start();
  const json run{{"plan", 1}, {"iteration_seconds", {0.1, 0.2}}};
  EXPECT_EQ(status("/v1/runs", run), 201);
  EXPECT_EQ(status("/v1/runs", run), 201);
  refused("/v1/runs", run, "", "--max-runs-per-token");
  EXPECT_EQ(rows("/v1/runs"), 3U) << "the lab's and two";
  EXPECT_EQ(status("/v1/runs", run, one_), 201);
  EXPECT_EQ(status("/v1/runs", run, "ct_start_1"), 201);
}

TEST_F(HostileQuota, NoMoreWaitingJobsThanATokenMayHave) {
  Jobs jobs(*store_);
  const RowId ended = jobs.enqueue({.kind = "probe", .cluster = 1});
  jobs.take_next(this_process());
  jobs.finish(ended, JobState::kInterrupted);
  jobs.enqueue({.kind = "probe", .cluster = 1});
  jobs.take_next(this_process());  // and goes on, so that all others on this cluster wait
  start();
  const std::string probes = "/v1/clusters/lab/probes", resume = fmt::format("/v1/jobs/{}/resume", ended);
  const json probe{{"budget_seconds", 1}};
  const Reply first = ask("POST", probes, probe, one_);
  EXPECT_EQ(first.status, 202) << first.body;
  refused(probes, probe, one_, "--max-waiting-jobs-per-token");
  refused("/v1/plans/1/runs", json::object(), one_, "--max-waiting-jobs-per-token");
  refused(resume, json::object(), one_, "--max-waiting-jobs-per-token");
  EXPECT_EQ(rows("/v1/jobs"), 3U);
  EXPECT_EQ(status(resume, json::object(), other_), 202);
  refused(probes, probe, other_, "--max-waiting-jobs-per-token");
  const std::string queued = fmt::format("/v1/jobs/{}", json::parse(first.body).at("id").get<RowId>());
  EXPECT_EQ(ask("DELETE", queued, nullptr, one_).status, 202);
  EXPECT_EQ(status(probes, probe, one_), 202) << "the cancelled one makes room";
}

TEST_F(HostileQuota, NoMoreAnswersThanATokenMayHaveKept) {
  start();
  const auto keyed = [&](const std::string& key, int seed, const std::string& token = {}) {
    idempotency_key_ = key;
    json glance = question(seed);
    glance["keep"] = "none";
    return ask("POST", "/v1/plans", glance, token);
  };
  EXPECT_EQ(keyed("a", 1, one_).status, 200);
  EXPECT_EQ(keyed("b", 2, one_).status, 200);
  const Reply third = keyed("c", 3, one_);
  EXPECT_EQ(third.status, 429) << third.body;
  EXPECT_THAT(third.body, HasSubstr("--max-answers-per-token"));
  EXPECT_EQ(keyed("b", 2, one_).status, 200) << "it is kept already";
  EXPECT_EQ(keyed("b", 3, one_).status, 422) << "and still tells a mistake";
  EXPECT_EQ(keyed("c", 3, other_).status, 200) << "another token may";
  EXPECT_EQ(keyed("c", 3).status, 200) << "and so may who has none";
  EXPECT_EQ(keyed("", 3, one_).status, 200) << "and nothing is kept of a request without a key";
}

TEST_F(HostileQuota, OfNothingAllowedNothingIsStored) {
  options_.quotas = {.profiles = 0, .plans = 0, .runs = 0, .waiting_jobs = 0, .answers = 0};
  start();
  refused("/v1/profiles", commtune::to_json(small_profile(3)), one_, "--max-profiles-per-token");
  refused("/v1/plans", question(1), one_, "--max-plans-per-token");
  refused("/v1/runs", {{"plan", 1}}, one_, "--max-runs-per-token");
  refused("/v1/clusters/lab/probes", json::object(), one_, "--max-waiting-jobs-per-token");
}

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

TEST_F(HostileQuestion, IsEndedWithinAPointToo) {
  start();
  // How often its limits are looked at before somebody leaves: more often than it has points.
  for (const auto& [path, times] : {std::pair{"/v1/scaling?most=1", 8}, std::pair{"/v1/servers?most=1", 8},
                                    std::pair{"/v1/phase-map?workers=4&bandwidth_scales=1", 200}}) {
    int looked = 0;
    client_gone_ = [&looked, last = times] { return ++looked == last; };
    const std::string target = fmt::format("{}&model=resnet50&cluster=lab", path);
    EXPECT_EQ(ask("GET", target).status, 499) << target << ": " << looked;
  }
}

TEST(ServeOptions, LimitsHaveToMakeSense) {
  ServeOptions options;
  options.plan_time = std::chrono::milliseconds(0);
  EXPECT_THAT(tests::error_of([&] { options.check(); }),
              tests::IsError(ErrorCode::kBadInput, "--plan-time 0 ms"));
  options = {};
  options.quotas.runs = -1;
  EXPECT_THAT(tests::error_of([&] { options.check(); }),
              tests::IsError(ErrorCode::kBadInput, "--max-runs-per-token -1"));
}

}  // namespace
}  // namespace commtune::api::rest
