// Files and databases of every version that was released: read, brought up to date, and compared with the
// digests that the version itself gave them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "executor/session/report.h"
#include "perfmodel/base/json_reader.h"
#include "probes/analysis/fit_cluster.h"
#include "store/stored_replies.h"
#include "store/tokens.h"
#include "tests/store/support.h"

namespace commtune {
namespace {

using ::testing::IsEmpty;
using ::testing::Not;

constexpr Page kAll{1000, 0};

std::vector<std::string> versions() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(COMMTUNE_FORMATS))
    if (std::filesystem::exists(entry.path() / "plan.json")) names.push_back(entry.path().filename());
  return names;
}

class Formats : public ::testing::TestWithParam<std::string> {
 protected:
  std::filesystem::path at(const char* name) const {
    return std::filesystem::path(COMMTUNE_FORMATS) / GetParam() / name;
  }
  nlohmann::json document(const char* name) const {
    std::ifstream in(at(name), std::ios::binary);
    return parse_json(std::string{std::istreambuf_iterator<char>(in), {}}, name);
  }
  /// The version's database, brought up to date.
  Store migrated() {
    std::filesystem::copy_file(at("store.db"), folder_ / "store.db");
    return Store::open(folder_ / "store.db");
  }

  const nlohmann::json digests_ = document("digests.json");
  tests::TempFolder folder_;
};

Profile timed_again(Profile profile) {
  for (Layer& layer : profile.layers) layer.backward *= 2;
  return profile;
}

TEST_P(Formats, FilesKeepTheirDigests) {
  const Profile profile = profile_from_json(document("profile.json"));
  const Plan plan = plan_from_json(document("plan.json"));
  EXPECT_EQ(digest(profile), digests_.at("profile"));
  EXPECT_EQ(digest(plan), digests_.at("plan"));
  EXPECT_NO_THROW(check(plan, profile));
  EXPECT_EQ(to_json(plan), document("plan.json"));
  const Cluster cluster = cluster_from_json(document("cluster.json"));
  EXPECT_EQ(cluster.fingerprint, digests_.at("fingerprint"));
  EXPECT_EQ(run_report_from_json(document("run.json")).plan_digest, digests_.at("plan"));
}

TEST_P(Formats, PlansOfADatabaseKeepTheirDigestsAndGetALayout) {
  Store store = migrated();
  EXPECT_THAT(store.examine(), IsEmpty());
  const auto plans = store.plans({}, kAll).rows;
  EXPECT_EQ(plans.size(), digests_.at("plans").size());
  for (const PlanSummary& summary : plans) {
    const PlanRow row = store.find_plan(summary.id).value();
    const Profile profile = store.find_profile(row.profile).value().profile;
    EXPECT_EQ(row.digest, digests_.at("plans").at(std::to_string(row.id)));
    EXPECT_EQ(digest(row.plan), row.digest);
    EXPECT_NO_THROW(check(row.plan, profile));
    EXPECT_EQ(row.layout, layout_digest(profile));
    Plan adopted = row.plan;
    adopted.layout = row.layout;
    EXPECT_NO_THROW(check(adopted, timed_again(profile)));
  }
}

TEST_P(Formats, AModelTimedAgainIsASecondRowOfADatabase) {
  Store store = migrated();
  const ProfileRow before = store.find_profile(digests_.at("profile").get<std::string>()).value();
  EXPECT_EQ(store.put_profile(before.profile), before.id);
  const RowId after = store.put_profile(timed_again(before.profile));
  EXPECT_NE(after, before.id);
  EXPECT_EQ(store.find_profile(after)->layout, before.layout);
}

TEST_P(Formats, AClusterOfADatabaseHasTheFingerprintThatAProbeWouldGiveItNow) {
  Store store = migrated();
  const ClusterRow row = store.find_cluster("lab").value();
  probes::ClusterFacts facts{row.name, row.transport, {}, row.newest_facts};
  for (const Host& host : row.hosts) facts.rank_hosts.insert(facts.rank_hosts.end(), host.slots, host.name);
  EXPECT_EQ(row.fingerprint, digests_.at("fingerprint"));
  EXPECT_EQ(probes::fingerprint(facts), row.fingerprint);
  facts.facts["wire_revision"] = "1";
  facts.facts["release." + row.hosts.at(0).name + ".open_mpi"] = "4.1.4";
  EXPECT_EQ(probes::fingerprint(facts), row.fingerprint);
}

TEST_P(Formats, NothingElseOfADatabaseIsLost) {
  Store store = migrated();
  const FitRow fit = store.current_fit("lab").value();
  EXPECT_EQ(to_json(fit.snapshot), to_json(cluster_from_json(document("cluster.json"))));
  EXPECT_THAT(store.all_samples(fit.session), Not(IsEmpty()));
  EXPECT_THAT(store.fit_curves(fit.id), Not(IsEmpty()));
  const auto runs = store.runs().rows;
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_EQ(runs[0].state, WorkState::kComplete);
  EXPECT_EQ(store.find_run(runs[0].id)->iteration_seconds, document("run.json").at("iteration_seconds"));
  EXPECT_THAT(store.find_run(runs[0].id)->differences, IsEmpty());
  EXPECT_EQ(Tokens(store).find(1)->name, "reader");
}

INSTANTIATE_TEST_SUITE_P(OfVersion, Formats, ::testing::ValuesIn(versions()), [](const auto& version) {
  std::string name = version.param;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
});

}  // namespace
}  // namespace commtune
