#include "tests/store/support.h"

namespace commtune {
namespace {

using tests::bare_cluster;
using tests::memory_store;

TEST(Clusters, AreReadBackAsTheyWere) {
  Store store = memory_store();
  const RowId id = store.put_cluster(bare_cluster());
  const auto row = store.find_cluster(id);
  ASSERT_TRUE(row);
  EXPECT_EQ(row->id, id);
  EXPECT_EQ(row->name, "lab");
  EXPECT_EQ(row->transport, "mpi");
  EXPECT_EQ(row->fingerprint, "0123456789abcdef");
  EXPECT_EQ(row->facts.at("mtu"), "1500");
  ASSERT_EQ(row->hosts.size(), 2U);
  EXPECT_EQ(row->hosts[1].name, "beta");
  EXPECT_EQ(row->hosts[1].slots, 2);
  EXPECT_EQ(row->origin.created, tests::noon());
  EXPECT_EQ(row->origin.version, "0.1.0");
}

TEST(Clusters, UnchangedMachinesAreOneRowSeenAgain) {
  Store store = memory_store();
  const RowId first = store.put_cluster(bare_cluster());
  EXPECT_EQ(store.put_cluster(bare_cluster()), first);
  const auto row = store.find_cluster(first);
  EXPECT_EQ(row->origin.created, tests::noon());
  EXPECT_EQ(row->seen, tests::noon() + std::chrono::seconds(1));
}

TEST(Clusters, KeepWhatWasLastSeenBesideWhatTheyWereFoundWith) {
  Store store = memory_store();
  Cluster cluster = bare_cluster();
  const RowId id = store.put_cluster(cluster);
  EXPECT_EQ(store.find_cluster(id)->newest_facts, cluster.facts);
  cluster.facts["release.alpha.open_mpi"] = "5.0.3";
  EXPECT_EQ(store.put_cluster(cluster), id);
  EXPECT_EQ(store.find_cluster(id)->facts, bare_cluster().facts);
  EXPECT_EQ(store.find_cluster(id)->newest_facts, cluster.facts);
  store.see_facts(id, {{"kernel", "6.5"}});
  cluster.facts["kernel"] = "6.5";
  EXPECT_EQ(store.find_cluster(id)->newest_facts, cluster.facts);
  EXPECT_EQ(store.find_cluster(id)->facts, bare_cluster().facts);
  EXPECT_THAT(tests::error_of([&] { store.see_facts(9, {}); }),
              tests::IsError(ErrorCode::kNotFound, "cluster 9"));
}

TEST(Clusters, HaveAStateThatChangesWithWhatPredictionsRestOn) {
  Store store = memory_store();
  EXPECT_FALSE(store.cluster_state("lab"));
  const RowId session = tests::running_session(store);
  const ClusterState bare = store.cluster_state("lab").value();
  EXPECT_EQ(bare.cluster, store.find_cluster("lab")->id);
  EXPECT_FALSE(bare.fit);
  tests::stored_plan(store);
  store.put_cluster(bare_cluster());  // the same, seen again
  store.put_cluster(bare_cluster("other"));
  EXPECT_EQ(store.cluster_state("lab"), bare);

  const RowId fit = store.add_fit({.session = session, .cluster = tests::fitted_cluster()});
  const ClusterState fitted = store.cluster_state("lab").value();
  EXPECT_EQ(fitted.fit, fit);
  store.see_facts(bare.cluster, {{"kernel", "6.5"}});
  EXPECT_NE(store.cluster_state("lab"), fitted);

  Cluster wider = bare_cluster();
  wider.hosts.push_back({"gamma", 2});
  const RowId other = store.put_cluster(wider);
  EXPECT_EQ(store.cluster_state("lab")->cluster, other);
  EXPECT_FALSE(store.cluster_state("lab")->fit);
}

/// The lab's row over this transport.
Cluster over(const std::string& transport) {
  Cluster cluster = bare_cluster();
  cluster.transport = transport;
  return cluster;
}

TEST(Clusters, AreKnownOverEachTransportBySomeRowOfTheirOwn) {
  Store store = memory_store();
  const RowId tcp = store.put_cluster(over("tcp"));
  const RowId mpi = store.put_cluster(bare_cluster());
  EXPECT_EQ(store.find_cluster("lab")->id, mpi);
  EXPECT_EQ(store.find_cluster("lab", "tcp")->id, tcp);
  EXPECT_FALSE(store.find_cluster("lab", "verbs"));
  const auto others = store.over_other_transports(*store.find_cluster(mpi));
  ASSERT_EQ(others.size(), 1U);
  EXPECT_EQ(others[0].id, tcp);
  EXPECT_EQ(store.over_other_transports(*store.find_cluster(tcp)).at(0).id, mpi);
}

TEST(Clusters, OverAnotherTransportOnOtherHostsAreOthers) {
  Store store = memory_store();
  store.put_cluster(over("tcp"));
  Cluster wider = over("tcp");
  wider.hosts.push_back({"gamma", 2});
  store.put_cluster(wider);
  const RowId mpi = store.put_cluster(bare_cluster());
  EXPECT_THAT(store.over_other_transports(*store.find_cluster(mpi)), ::testing::IsEmpty());
}

TEST(Clusters, HaveAStateThatChangesWithWhatIsKnownOverAnotherTransport) {
  Store store = memory_store();
  const RowId tcp = store.put_cluster(over("tcp"));
  store.put_cluster(bare_cluster());
  const ClusterState before = store.cluster_state("lab").value();
  ASSERT_EQ(before.others.size(), 1U);
  EXPECT_EQ(before.others[0].cluster, tcp);
  store.see_facts(tcp, {{"kernel", "6.5"}});
  EXPECT_NE(store.cluster_state("lab"), before);
}

TEST(Clusters, ChangedMachinesAreAnotherRowOfTheSameName) {
  Store store = memory_store();
  const RowId first = store.put_cluster(bare_cluster());
  Cluster changed = bare_cluster();
  changed.fingerprint = "fedcba9876543210";
  const RowId second = store.put_cluster(changed);
  EXPECT_NE(first, second);
  EXPECT_EQ(store.find_cluster("lab")->id, second);
  Cluster wider = bare_cluster();
  wider.hosts.push_back({"gamma", 2});
  EXPECT_EQ(store.find_cluster(store.put_cluster(wider))->hosts.size(), 3U);
}

TEST(Clusters, TheLatestSeenIsCurrentEvenWithinOneTickOfTheClock) {
  Store store = Store::open(":memory:", {.clock = tests::noon});
  const RowId first = store.put_cluster(bare_cluster());
  Cluster changed = bare_cluster();
  changed.fingerprint = "fedcba9876543210";
  store.put_cluster(changed);
  store.put_cluster(bare_cluster());  // the old kernel was booted again
  EXPECT_EQ(store.find_cluster("lab")->id, first);
}

TEST(Clusters, AbsentOnesAreEmpty) {
  Store store = memory_store();
  EXPECT_FALSE(store.find_cluster("nowhere"));
  EXPECT_FALSE(store.find_cluster(RowId{7}));
}

TEST(Clusters, NeedAName) {
  Store store = memory_store();
  EXPECT_THAT(tests::error_of([&] { store.put_cluster(bare_cluster("")); }),
              tests::IsError(ErrorCode::kBadInput, "cluster.name"));
}

TEST(Clusters, KeepNamesThatLookLikeSql) {
  Store store = memory_store();
  const std::string name = "x'; DROP TABLE clusters; --\n\xc3\xa4";
  store.put_cluster(bare_cluster(name));
  EXPECT_EQ(store.find_cluster(name)->name, name);
}

TEST(Clusters, AreListedNewestFirstPageByPage) {
  Store store = memory_store();
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    store.put_cluster(bare_cluster(name));
  }
  std::string names;
  int pages = 0;
  std::optional<RowId> after = 0;
  while (after) {
    const auto page = store.clusters({.limit = 2, .after = *after});
    for (const ClusterRow& row : page.rows) {
      names += row.name;
    }
    after = page.next;
    ++pages;
  }
  EXPECT_EQ(names, "edcba");
  EXPECT_EQ(pages, 3);
  EXPECT_FALSE(store.clusters({.limit = 5}).next);  // exactly full: still the last
}

TEST(Clusters, RefuseSenselessPages) {
  Store store = memory_store();
  EXPECT_THAT(tests::error_of([&] { store.clusters({.limit = 0}); }),
              tests::IsError(ErrorCode::kBadInput, "limit = 0"));
  EXPECT_THAT(tests::error_of([&] { store.clusters({.limit = 1001}); }),
              tests::IsError(ErrorCode::kBadInput, "limit = 1001"));
  EXPECT_THAT(tests::error_of([&] { store.clusters({.after = -1}); }),
              tests::IsError(ErrorCode::kBadInput, "after = -1"));
}

}  // namespace
}  // namespace commtune
