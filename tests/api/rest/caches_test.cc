#include "api/rest/caches.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "api/rest/store_access.h"
#include "tests/api/rest/made_lab.h"
#include "tests/perfmodel/synthetic_profile.h"
#include "tests/store/processes.h"
#include "tests/store/support.h"

namespace commtune::api::rest {
namespace {

/// The made-up lab, with fit 1.
Store made_lab_store(const commtune::tests::TempFolder& folder) {
  Store store = Store::open(folder / "store.db", {.version = "test"});
  make_lab(store, synthetic_profile(2, Bytes{1 << 20}, Seconds{1e-3}, Seconds{2e-3}));
  return store;
}

/// What a probe ends with.
RowId add_fit(Store& store, const Cluster& cluster) {
  const RowId session = store.start_session({.cluster = store.put_cluster(cluster)});
  store.end_session(session, WorkState::kComplete);
  return store.add_fit({session, cluster, nullptr});
}

/// The lab, read once.
class FitCacheTest : public ::testing::Test {
 protected:
  FitCacheTest() : store_(made_lab_store(folder_)), cache_(store_) { cache_.find("lab"); }

  Cluster lab() { return store_.reader()->current_fit("lab")->snapshot; }

  const commtune::tests::TempFolder folder_;
  StoreAccess store_;
  FitCache cache_;
};

TEST_F(FitCacheTest, IsNotReadAgainForPlansAndRunsThatWereStored) {
  ASSERT_EQ(cache_.reads(), 1U);
  const FitPointer first = cache_.find("lab").fits.at(0).fit;
  for (int i = 0; i < 3; ++i) {
    const std::uint64_t before = store_.generation();
    store_.write([](Store& store) { commtune::tests::stored_plan(store); });
    store_.write([](Store& store) { store.add_run(run_of(1), result_of(0.3)); });
    EXPECT_NE(store_.generation(), before);  // the store did change
    EXPECT_EQ(cache_.find("lab").fits.at(0).fit, first);
  }
  EXPECT_EQ(cache_.reads(), 1U);
}

TEST_F(FitCacheTest, IsNotReadAgainForAnotherClustersProbe) {
  store_.write([](Store& store) { add_fit(store, commtune::tests::fitted_cluster("other")); });
  EXPECT_EQ(cache_.find("lab").all->fit, 1);
  EXPECT_EQ(cache_.reads(), 1U);
  EXPECT_EQ(cache_.find("other").all->fit, 2);
  EXPECT_EQ(cache_.reads(), 2U);
}

TEST_F(FitCacheTest, SeesANewFit) {
  const Cluster cluster = lab();
  const auto fit = store_.write([&](Store& store) { return add_fit(store, cluster); });
  EXPECT_EQ(cache_.find("lab").all->fit, fit);
}

/// The process is there first: SQLite's connections must not be carried through a fork.
TEST(FitCache, SeesAFitThatAnotherProcessStored) {
  const commtune::tests::TempFolder folder;
  const Cluster cluster = made_lab_store(folder).current_fit("lab")->snapshot;
  std::array<int, 2> go{};
  ASSERT_EQ(::pipe(go.data()), 0);
  commtune::tests::ChildProcess child([&](int pipe) {
    char word = 0;
    if (::read(go[0], &word, 1) != 1) throw std::runtime_error("nobody said go");
    Store store = Store::open(folder / "store.db", {.version = "another"});
    commtune::tests::write_number(pipe, add_fit(store, cluster));
  });
  StoreAccess store(Store::open(folder / "store.db", {.version = "test"}));
  FitCache cache(store);
  EXPECT_EQ(cache.find("lab").all->fit, 1);
  ASSERT_EQ(::write(go[1], "g", 1), 1);
  EXPECT_EQ(child.wait(), 0) << child.read_text();
  std::int64_t fit = 0;
  ASSERT_TRUE(child.read_number(fit));
  EXPECT_GT(fit, 1);
  EXPECT_EQ(cache.find("lab").all->fit, fit);
  for (const int end : go) ::close(end);
}

TEST_F(FitCacheTest, SeesFactsThatARunFoundChanged) {
  const std::vector<std::string> before = cache_.find("lab").all->marks.differences;
  store_.write([](Store& store) { store.see_facts(1, {{"host.n1.cpu", "exchanged"}}); });
  EXPECT_EQ(cache_.find("lab").all->marks.differences.size(), before.size() + 1);
  store_.write([](Store& store) { store.see_facts(1, {{"host.n1.cpu", "made up"}}); });
  EXPECT_EQ(cache_.find("lab").all->marks.differences, before);
}

TEST_F(FitCacheTest, SeesThatTheMachinesAreOthersNow) {
  Cluster wider = lab();
  wider.hosts.push_back({"n3", 2});
  store_.write([&](Store& store) { store.put_cluster(wider); });
  const FitCache::Known known = cache_.find("lab");
  EXPECT_TRUE(known.registered);
  EXPECT_FALSE(known.all);
}

TEST_F(FitCacheTest, SeesAFitOverAnotherTransport) {
  EXPECT_TRUE(cache_.find("lab").all->fits.empty());
  Cluster other = lab();
  other.transport = "mpi";
  const auto fit = store_.write([&](Store& store) { return add_fit(store, other); });
  const FitCache::Known known = cache_.find("lab");
  EXPECT_EQ(known.all->fits, (FitIds{{"mpi", fit}, {"tcp", 1}}));
  EXPECT_EQ(transports_of(*known.all->cluster), "mpi, tcp");
  const Fitted alone = known.fitted("tcp", FitAge{Seconds{1e9}, system_now()});
  EXPECT_EQ(alone.fit, 1);
  EXPECT_TRUE(alone.fits.empty());
  EXPECT_EQ(transports_of(*alone.cluster), "tcp");
}

TEST_F(FitCacheTest, DoesNotRememberClustersThatThereAreNot) {
  EXPECT_FALSE(cache_.find("cellar").registered);
  store_.write([](Store& store) { add_fit(store, commtune::tests::fitted_cluster("cellar")); });
  EXPECT_TRUE(cache_.find("cellar").all);
}

}  // namespace
}  // namespace commtune::api::rest
