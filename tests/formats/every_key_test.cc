// What this program writes is, bit for bit, what was written when the newest folder schema-N was made; what
// any of them holds is read, means the same, and is written back the same. Renaming and moving code changes
// none of it. A version that adds a key makes a further folder with commtune-make-every-key and leaves those
// that are there as they are.

#include "tests/formats/every_key.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>

#include "api/view/sample_rows.h"
#include "executor/session/report.h"
#include "perfmodel/base/error.h"
#include "perfmodel/base/json_reader.h"
#include "perfmodel/cluster.h"
#include "perfmodel/plan.h"
#include "store/store.h"
#include "tests/store/every_row.h"
#include "tests/store/support.h"

namespace commtune {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using tests::text_of_database;

std::filesystem::path folder_of(int schema) {
  return std::filesystem::path(COMMTUNE_FORMATS) / ("schema-" + std::to_string(schema));
}

std::vector<int> schemas() {
  std::vector<int> found;
  for (int schema = 1; schema <= Store::schema_version(); ++schema)
    if (std::filesystem::exists(folder_of(schema))) found.push_back(schema);
  return found;
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

nlohmann::json document_of(const std::filesystem::path& path) {
  return parse_json(text_of(path), path.filename().string());
}

std::string kind_of(const std::string& name) { return name.substr(0, name.find('-')); }

/// Reads a document and writes it again. Settings are kept as they are.
nlohmann::json written_back(const std::string& name, const nlohmann::json& document) {
  const std::string kind = kind_of(name);
  if (kind == "plan") return to_json(plan_from_json(document));
  if (kind == "profile") return to_json(profile_from_json(document));
  if (kind == "cluster") return to_json(cluster_from_json(document));
  if (kind == "run") return to_json(run_report_from_json(document));
  if (kind != "samples") return document;
  nlohmann::json samples = nlohmann::json::array();
  for (const nlohmann::json& sample : document)
    samples.push_back(to_json(probes::probe_sample_from_json(sample)));
  return samples;
}

std::string newer_complaint(const std::string& name, const nlohmann::json& document) {
  return tests::error_of([&] { written_back(name, document); }).what();
}

std::string digest_of(const std::string& name, const nlohmann::json& document) {
  return kind_of(name) == "plan" ? digest(plan_from_json(document)) : digest(profile_from_json(document));
}

class EveryKey : public ::testing::TestWithParam<int> {
 protected:
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      const std::string name = entry.path().stem();
      if (entry.path().extension() == ".json" && name != "digests") found.push_back(name);
    }
    return found;
  }
  nlohmann::json document(const std::string& name) const { return document_of(folder_ / (name + ".json")); }

  const std::filesystem::path folder_ = folder_of(GetParam());
  const nlohmann::json digests_ = document("digests");
};

TEST_P(EveryKey, DocumentsAreReadAndWrittenBackTheSame) {
  for (const std::string& name : names())
    EXPECT_EQ(written_back(name, document(name)).dump(), document(name).dump()) << name;
}

TEST_P(EveryKey, DocumentsKeepTheirDigests) {
  for (const std::string& name : names()) {
    if (kind_of(name) != "plan" && kind_of(name) != "profile") continue;
    EXPECT_EQ(digest_of(name, document(name)), digests_.at(name)) << name;
    if (kind_of(name) == "profile") {
      EXPECT_EQ(layout_digest(profile_from_json(document(name))), digests_.at("layout of " + name));
    } else {
      EXPECT_NO_THROW(check(plan_from_json(document(name)), tests::made_up_profile())) << name;
    }
  }
  const Cluster cluster = cluster_from_json(document("cluster-fitted"));
  probes::ClusterFacts facts{cluster.name, cluster.transport, {}, cluster.facts};
  for (const Host& host : cluster.hosts)
    facts.rank_hosts.insert(facts.rank_hosts.end(), static_cast<std::size_t>(host.slots), host.name);
  EXPECT_EQ(probes::fingerprint(facts), digests_.at("fingerprint"));
}

TEST_P(EveryKey, DatabasesHoldWhatTheDocumentsSay) {
  const tests::TempFolder folder;
  std::filesystem::copy_file(folder_ / "store.db", folder / "store.db");
  const Store store = Store::open(folder / "store.db");
  EXPECT_THAT(store.examine(), IsEmpty());
  const FitRow fit = store.current_fit("made-up").value();
  EXPECT_EQ(to_json(fit.snapshot), document("cluster-fitted"));
  std::set<std::string> digests;
  for (const PlanSummary& summary : store.plans({}, {1000, 0}).rows) {
    const PlanRow row = store.find_plan(summary.id).value();
    EXPECT_EQ(digest(row.plan), row.digest);
    EXPECT_EQ(row.layout, layout_digest(tests::made_up_profile()));
    digests.insert(row.digest);
  }
  for (const std::string& name : names()) {
    if (kind_of(name) == "plan") {
      EXPECT_TRUE(digests.contains(digests_.at(name))) << name;
    }
  }
  nlohmann::json samples = nlohmann::json::array();
  for (const SampleRow& row : store.all_samples(fit.session)) samples.push_back(to_json(api::from_row(row)));
  samples.erase(samples.size() - 1);  // the one that was added later
  EXPECT_EQ(samples, document("samples-of-each-subject"));
  EXPECT_EQ(store.find_run(1)->messages, document("run-complete").at("messages"));
}

TEST_P(EveryKey, OfANewerVersionIsSaidSo) {
  for (const std::string& name : names()) {
    nlohmann::json newer = document(name);
    if (!newer.is_object() || !newer.contains("format")) continue;
    std::string format = newer.at("format");
    format.back() = '2';
    newer["format"] = format;
    EXPECT_THAT(newer_complaint(name, newer), HasSubstr("made by a newer commtune")) << name;
    if (kind_of(name) == "run") continue;  // a report's further keys are for people
    nlohmann::json longer = document(name);
    longer["further"] = 1;
    EXPECT_THAT(newer_complaint(name, longer), HasSubstr("made by a newer commtune")) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(OfSchema, EveryKey, ::testing::ValuesIn(schemas()),
                         ::testing::PrintToStringParamName());

TEST(NewestEveryKey, IsOfTheSchemaThatDatabasesHaveNow) {
  EXPECT_EQ(schemas().back(), Store::schema_version());
}

TEST(NewestEveryKey, DocumentsAreStillWrittenBitForBit) {
  const std::filesystem::path newest = folder_of(schemas().back());
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(newest))
    files += entry.path().extension() == ".json" ? 1 : 0;
  const auto documents = tests::every_document();
  EXPECT_EQ(files, documents.size() + 1);
  for (const auto& [name, document] : documents)
    EXPECT_EQ(document.dump(1) + "\n", text_of(newest / (name + ".json"))) << name;
  EXPECT_EQ(tests::every_digest().dump(1) + "\n", text_of(newest / "digests.json"));
}

TEST(NewestEveryKey, RowsAreStillWrittenBitForBit) {
  const tests::TempFolder folder;
  std::filesystem::copy_file(folder_of(schemas().back()) / "store.db", folder / "stored.db");
  tests::make_database(folder / "made.db");
  const std::string stored = text_of_database(folder / "stored.db");
  EXPECT_EQ(text_of_database(folder / "made.db"), stored);
  for (const char* table : {"answers", "clusters", "fit_curves", "fits", "job_log", "jobs", "layouts",
                            "plans", "profiles", "runs", "samples", "sessions", "token_rows", "tokens"})
    EXPECT_THAT(stored, HasSubstr("\n" + std::string(table) + ": ")) << "no row";
}

/// A plan's document with a key put in where `place` (of the document or of its road) leaves it out.
nlohmann::json with(nlohmann::json document, const std::string& place, const nlohmann::json& value) {
  document[nlohmann::json::json_pointer(place)] = value;
  return document;
}

TEST(OptionalKeys, EnterADigestOnlyWhenSet) {
  struct Key {
    const char *plan, *place;
    nlohmann::json unset, set;
  };
  const std::filesystem::path newest = folder_of(schemas().back());
  const nlohmann::json step = {{"message", 0}, {"stage", "reduce"}};
  const nlohmann::json piece = {{"tensor", 0}, {"offset_bytes", 0}, {"length_bytes", 4}};
  for (const Key& key :
       {Key{"plan-servers-dedicated", "/road/local_sum", "none", "first"},
        Key{"plan-servers", "/road/first", 0, 1}, Key{"plan-ring", "/layout", nullptr, "0123456789abcdef"},
        Key{"plan-library", "/library", nullptr, "nccl"}, Key{"plan-ring", "/wire", nullptr, "bf16"},
        Key{"plan-ring", "/transport", nullptr, "mpi"},
        Key{"plan-servers-dedicated", "/server", nlohmann::json::array(), {0, 2}},
        Key{"plan-ring", "/window_bytes", nlohmann::json::array(), {0, 400}},
        Key{"plan-servers", "/pulls", nlohmann::json::array(),
            nlohmann::json::array({{{"pieces", {piece}}}})},
        Key{"plan-ring", "/sequence", nlohmann::json::array(), nlohmann::json::array({step})}}) {
    const nlohmann::json document = document_of(newest / (std::string(key.plan) + ".json"));
    const std::string before = digest(plan_from_json(document));
    EXPECT_EQ(digest(plan_from_json(with(document, key.place, key.unset))), before) << key.place;
    EXPECT_NE(digest(plan_from_json(with(document, key.place, key.set))), before) << key.place;
  }
}

TEST(OptionalKeys, AreLeftOutWhereNothingIsSaid) {
  const std::filesystem::path newest = folder_of(schemas().back());
  const nlohmann::json ring = document_of(newest / "plan-ring.json");
  EXPECT_FALSE(ring.contains("layout") || ring.contains("window_bytes") || ring.contains("pulls") ||
               ring.contains("pace_bytes_per_second"));
  EXPECT_FALSE(document_of(newest / "plan-servers-dedicated.json").contains("server"));
  const nlohmann::json road = document_of(newest / "plan-servers.json").at("road");
  EXPECT_FALSE(road.contains("local_sum") || road.contains("first"));
  const nlohmann::json bare = document_of(newest / "cluster-bare.json");
  for (const char* key : {"contention", "backlog_seconds", "connection_backlog_seconds", "formula_deviation",
                          "plan_deviation", "others"})
    EXPECT_FALSE(bare.contains(key)) << key;
  EXPECT_FALSE(bare.at("hosts").at(0).contains("compute_factor"));
}

}  // namespace
}  // namespace commtune
