#include "tests/store/support.h"

namespace commtune {
namespace {

using tests::error_of;
using tests::IsError;
using tests::memory_store;
using tests::running_session;

TEST(Sessions, AreReadBackAsTheyWere) {
  Store store = memory_store();
  const RowId cluster = store.put_cluster(tests::bare_cluster());
  const RowId id = store.start_session({.cluster = cluster,
                                        .settings = {{"sizes", {4, 8}}},
                                        .budget = Seconds{8},
                                        .resumable = false,
                                        .owner = "alpha pid 7"});
  const auto row = store.find_session(id);
  ASSERT_TRUE(row);
  EXPECT_EQ(row->cluster, cluster);
  EXPECT_EQ(row->settings, nlohmann::json({{"sizes", {4, 8}}}));
  EXPECT_EQ(row->budget, Seconds{8});
  EXPECT_FALSE(row->resumable);
  EXPECT_EQ(row->owner, "alpha pid 7");
  EXPECT_EQ(row->state, WorkState::kRunning);
  EXPECT_FALSE(row->ended);
  EXPECT_EQ(row->samples, 0);
}

TEST(Sessions, SayHowAndWhenTheyEnded) {
  Store store = memory_store();
  const RowId id = running_session(store);
  store.end_session(id, WorkState::kFailed, "rank 3 (beta) went away");
  const auto row = store.find_session(id);
  EXPECT_EQ(row->state, WorkState::kFailed);
  EXPECT_EQ(row->error, "rank 3 (beta) went away");
  EXPECT_GT(row->ended, row->origin.created);
}

TEST(Sessions, EndOnceAndNotAsRunning) {
  Store store = memory_store();
  const RowId id = running_session(store);
  EXPECT_THAT(error_of([&] { store.end_session(id, WorkState::kRunning); }),
              IsError(ErrorCode::kBadInput, "state = running"));
  store.end_session(id, WorkState::kComplete);
  EXPECT_THAT(error_of([&] { store.end_session(id, WorkState::kFailed); }),
              IsError(ErrorCode::kConflict, "has ended already: complete"));
  EXPECT_EQ(store.find_session(id)->state, WorkState::kComplete);
}

TEST(Sessions, OneRunsOnAClusterAtATime) {
  Store store = memory_store();
  const RowId cluster = store.put_cluster(tests::bare_cluster());
  store.start_session({.cluster = cluster, .owner = "alpha pid 7"});
  EXPECT_THAT(error_of([&] { store.start_session({.cluster = cluster}); }),
              IsError(ErrorCode::kConflict, "(alpha pid 7): one at a time"));
  running_session(store, "another");  // elsewhere is no conflict
}

TEST(Sessions, AreResumedAfterAnInterruption) {
  Store store = memory_store();
  const RowId id = running_session(store);
  const RowId cluster = store.find_session(id)->cluster;
  EXPECT_FALSE(store.resumable_session(cluster));  // it runs
  store.append_sample(id, tests::small_sample());
  store.end_session(id, WorkState::kInterrupted);
  ASSERT_TRUE(store.resumable_session(cluster));
  EXPECT_EQ(store.resumable_session(cluster)->id, id);

  store.resume_session(id, "alpha pid 8");
  const auto row = store.running_session(cluster);
  ASSERT_TRUE(row);
  EXPECT_EQ(row->id, id);
  EXPECT_EQ(row->owner, "alpha pid 8");
  EXPECT_EQ(row->resumed, 1);
  EXPECT_EQ(row->samples, 1);
  store.append_sample(id, tests::small_sample());
  EXPECT_EQ(store.all_samples(id).size(), 2U);
}

TEST(Sessions, OnlyTheNewestCanBeResumed) {
  Store store = memory_store();
  const RowId id = running_session(store);
  const RowId cluster = store.find_session(id)->cluster;
  store.end_session(id, WorkState::kInterrupted);
  store.end_session(store.start_session({.cluster = cluster}), WorkState::kComplete);
  EXPECT_FALSE(store.resumable_session(cluster));
}

TEST(Sessions, RefuseToBeResumedWhenCompleteOrNotMeantToOrWhileAnotherRuns) {
  Store store = memory_store();
  const RowId complete = running_session(store);
  const RowId cluster = store.find_session(complete)->cluster;
  store.end_session(complete, WorkState::kComplete);
  EXPECT_THAT(error_of([&] { store.resume_session(complete, ""); }),
              IsError(ErrorCode::kConflict, "cannot be resumed: it is complete"));

  const RowId once = store.start_session({.cluster = cluster, .resumable = false});
  EXPECT_THAT(error_of([&] { store.resume_session(complete, ""); }),
              IsError(ErrorCode::kConflict, "one at a time"));
  store.end_session(once, WorkState::kInterrupted);
  EXPECT_FALSE(store.resumable_session(cluster));
  EXPECT_THAT(error_of([&] { store.resume_session(once, ""); }),
              IsError(ErrorCode::kConflict, "it is not resumable"));
  EXPECT_THAT(error_of([&] { store.resume_session(99, ""); }), IsError(ErrorCode::kNotFound, "session 99"));
}

TEST(Sessions, NeedTheirCluster) {
  Store store = memory_store();
  EXPECT_THAT(error_of([&] { store.start_session({.cluster = 5}); }),
              IsError(ErrorCode::kNotFound, "cluster 5: there is none"));
}

TEST(Sessions, AreListedByClusterOrAltogether) {
  Store store = memory_store();
  const RowId first = running_session(store, "lab");
  const RowId second = running_session(store, "attic");
  const auto all = store.sessions();
  ASSERT_EQ(all.rows.size(), 2U);
  EXPECT_EQ(all.rows[0].id, second);
  const auto lab = store.sessions(store.find_session(first)->cluster);
  ASSERT_EQ(lab.rows.size(), 1U);
  EXPECT_EQ(lab.rows[0].id, first);
}

}  // namespace
}  // namespace commtune
