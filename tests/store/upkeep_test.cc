// Backup, pruning and examination.

#include <signal.h>
#include <sys/resource.h>

#include <atomic>
#include <fstream>
#include <iterator>
#include <thread>

#include "store/database_connection.h"
#include "store/jobs.h"
#include "store/stored_replies.h"
#include "tests/store/processes.h"
#include "tests/store/support.h"

namespace commtune {
namespace {

using tests::error_of;
using tests::IsError;
using tests::TempFolder;

TEST(Backup, IsAStoreOfThatMoment) {
  const TempFolder folder;
  Store store = Store::open(folder / "store.db");
  store.put_cluster(tests::bare_cluster("before"));
  store.backup(folder / "backup.db");
  store.put_cluster(tests::bare_cluster("after"));
  const Store copy = Store::open(folder / "backup.db");
  EXPECT_TRUE(copy.find_cluster("before"));
  EXPECT_FALSE(copy.find_cluster("after"));
  EXPECT_TRUE(copy.examine().empty());
}

TEST(Backup, ReplacesTheOneBeforeAndLeavesNothingElse) {
  const TempFolder folder;
  Store store = tests::memory_store();
  store.backup(folder / "backup.db");
  store.put_cluster(tests::bare_cluster());
  store.backup(folder / "backup.db");
  EXPECT_TRUE(Store::open(folder / "backup.db").find_cluster("lab"));
  const std::filesystem::directory_iterator files(folder.path());
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);
}

TEST(Backup, ThatFailsLeavesTheOneBefore) {
  const TempFolder folder;
  Store store = tests::memory_store();
  store.put_cluster(tests::bare_cluster());
  store.backup(folder / "backup.db");
  const tests::ChildProcess without_space([&](int) {
    const rlimit few{4096, 4096};
    setrlimit(RLIMIT_FSIZE, &few);
    signal(SIGXFSZ, SIG_IGN);
    store.backup(folder / "backup.db");
  });
  EXPECT_THAT(without_space.read_text(), ::testing::HasSubstr("backup.db: "));
  EXPECT_TRUE(Store::open(folder / "backup.db").find_cluster("lab"));
  const std::filesystem::directory_iterator files(folder.path());
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);
  EXPECT_THAT(error_of([&] { store.backup(folder / "missing/backup.db"); }),
              IsError(ErrorCode::kStorage, "missing: no backup can be written here"));
}

TEST(HostileFolder, LinkUnderTheNameOfABackupIsNotFollowed) {
  const TempFolder folder;
  std::ofstream(folder / "victim") << "dear";
  std::filesystem::create_symlink(folder / "victim", folder / "backup.db");
  tests::memory_store().backup(folder / "backup.db");
  EXPECT_EQ(std::filesystem::file_size(folder / "victim"), 4U);
  EXPECT_FALSE(std::filesystem::is_symlink(folder / "backup.db"));
}

TEST(HostileFolder, LinkUnderTheNameOfAPartialBackupIsNotFollowed) {
  const TempFolder folder;
  std::ofstream(folder / "victim") << "";
  std::atomic<bool> done = false;
  const std::jthread attacker([&] {
    std::error_code ignored;
    while (!done) std::filesystem::create_symlink(folder / "victim", folder / "backup.db.partial", ignored);
  });
  Store store = tests::memory_store();
  for (int i = 0; i < 20; ++i) {
    store.backup(folder / "backup.db");
  }
  done = true;
  EXPECT_EQ(std::filesystem::file_size(folder / "victim"), 0U);
}

TEST(Backup, DoesNotTouchAStoreInUse) {
  const TempFolder folder;
  Store store = Store::open(folder / "store.db");
  Store other = Store::open(folder / "other.db");
  other.put_cluster(tests::bare_cluster());
  EXPECT_THAT(error_of([&] { store.backup(folder / "store.db"); }),
              IsError(ErrorCode::kBadInput, "cannot be its own backup"));
  std::filesystem::create_symlink(folder / "store.db", folder / "link.db");
  EXPECT_THAT(error_of([&] { store.backup(folder / "link.db"); }),
              IsError(ErrorCode::kBadInput, "cannot be its own backup"));
  EXPECT_THAT(error_of([&] { store.backup(folder / "other.db"); }), IsError(ErrorCode::kConflict, "in use"));
  EXPECT_TRUE(other.find_cluster("lab"));
}

TEST(Backup, WhileOthersWriteHasWholeTransactionsOnly) {
  const TempFolder folder;
  const auto path = folder / "store.db";
  Store store = Store::open(path);
  const RowId session = tests::running_session(store);
  std::atomic<bool> done = false;
  std::jthread writer([&] {
    Store own = Store::open(path);
    const std::vector<NewSample> pair(2, tests::small_sample());
    while (!done) {
      own.append_samples(session, pair);
    }
  });
  for (int i = 0; i < 5; ++i) {
    store.backup(folder / "backup.db");
    const Store copy = Store::open(folder / "backup.db");
    EXPECT_EQ(copy.all_samples(session).size() % 2, 0U);
  }
  done = true;
}

/// Two probes of a cluster with a fit each, a plan and a run on the first fit, another plan on the second.
class PruneTest : public ::testing::Test {
 protected:
  PruneTest() {
    cluster_ = store_.put_cluster(tests::bare_cluster());
    for (int i = 0; i < 2; ++i) {
      const RowId session = store_.start_session({.cluster = cluster_});
      store_.append_samples(session, std::vector<NewSample>(3, tests::small_sample()));
      store_.end_session(session, WorkState::kComplete);
      sessions_.push_back(session);
      fits_.push_back(store_.add_fit({.session = session, .cluster = tests::fitted_cluster()}));
      plans_.push_back(store_.add_plan({.plan = tests::small_plan(),
                                        .profile = store_.put_profile(tests::small_profile()),
                                        .fit = fits_.back()}));
    }
    run_ = store_.add_run({.plan = plans_[0], .cluster = cluster_}, {.iteration_seconds = {0.1}});
  }
  Store store_ = tests::memory_store();
  RowId cluster_ = 0, run_ = 0;
  std::vector<RowId> sessions_, fits_, plans_;
};

TEST_F(PruneTest, KeepsWhatTheCurrentFitCameFromWhateverIsAskedFor) {
  const PruneReport report = store_.prune({.keep = 0});
  EXPECT_EQ(report.runs, 1);
  EXPECT_EQ(report.plans, 2);
  EXPECT_EQ(report.fits, 1);
  EXPECT_EQ(report.sessions, 1);
  EXPECT_EQ(report.samples, 3);
  EXPECT_EQ(report.profiles, 1);
  EXPECT_EQ(report.clusters, 0);
  EXPECT_EQ(store_.current_fit("lab")->id, fits_[1]);
  EXPECT_EQ(store_.all_samples(sessions_[1]).size(), 3U);
  EXPECT_TRUE(store_.fit_curves(fits_[0]).empty());
  EXPECT_TRUE(store_.examine().empty());
}

TEST_F(PruneTest, KeepsWhatAKeptRunRefersTo) {
  const PruneReport report = store_.prune({.keep = 1});
  EXPECT_EQ(report.runs + report.plans + report.fits + report.sessions + report.samples, 0);
  EXPECT_TRUE(store_.find_run(run_));
  EXPECT_TRUE(store_.find_fit(fits_[0]));
}

TEST_F(PruneTest, TakesOnlyWhatIsOldEnough) {
  EXPECT_EQ(store_.prune({.before = tests::noon()}).runs, 0);
  const Timestamp tomorrow = tests::noon() + std::chrono::days(1);
  EXPECT_EQ(store_.prune({.before = tomorrow, .keep = 1}).runs, 0);
  EXPECT_EQ(store_.prune({.before = tomorrow}).runs, 1);
}

TEST_F(PruneTest, OnlyCountsInADryRun) {
  const PruneReport report = store_.prune({.keep = 0, .dry_run = true});
  EXPECT_EQ(report.runs, 1);
  EXPECT_EQ(report.samples, 3);
  EXPECT_EQ(report.freed, Bytes{0});
  EXPECT_TRUE(store_.find_run(run_));
}

TEST_F(PruneTest, SparesWhatRunsAndWhatCanBeResumed) {
  const RowId run = store_.start_run({.plan = plans_[1]});
  const RowId session = store_.start_session({.cluster = cluster_});
  store_.append_sample(session, tests::small_sample());
  store_.prune({.keep = 0});
  EXPECT_TRUE(store_.find_run(run));
  EXPECT_TRUE(store_.find_plan(plans_[1]));
  EXPECT_TRUE(store_.find_session(session));
  store_.end_session(session, WorkState::kInterrupted);
  store_.prune({.keep = 0});
  EXPECT_EQ(store_.resumable_session(cluster_)->samples, 1);
}

TEST_F(PruneTest, TakesClustersThatWereReplacedAndAreReferredToByNothing) {
  Cluster changed = tests::bare_cluster("attic");
  store_.put_cluster(changed);
  changed.fingerprint = "fedcba9876543210";
  const RowId current = store_.put_cluster(changed);
  EXPECT_EQ(store_.prune({.keep = 0}).clusters, 1);
  EXPECT_EQ(store_.find_cluster("attic")->id, current);
  EXPECT_TRUE(store_.find_cluster("lab"));
}

TEST_F(PruneTest, TakesEndedJobsWithTheirLogsAndOldAnswers) {
  Jobs jobs(store_);
  const RowId ended = jobs.enqueue({.kind = "probe", .cluster = cluster_});
  jobs.append_log(ended, "a line");
  jobs.request_cancel(ended);
  const RowId queued = jobs.enqueue({.kind = "probe", .cluster = cluster_});
  StoredReplies(store_).claim({"k", "digest"}, tests::noon());
  const PruneReport report = store_.prune({.before = tests::noon() + std::chrono::days(1)});
  EXPECT_EQ(report.jobs, 1);
  EXPECT_EQ(report.answers, 1);
  EXPECT_FALSE(jobs.find(ended));
  EXPECT_TRUE(jobs.log(ended).rows.empty());
  EXPECT_TRUE(jobs.find(queued));
}

TEST_F(PruneTest, NeedsToKnowWhatIsOld) {
  EXPECT_THAT(error_of([&] { store_.prune({}); }), IsError(ErrorCode::kBadInput, "say what is old"));
  EXPECT_THAT(error_of([&] { store_.prune({.keep = -1}); }), IsError(ErrorCode::kBadInput, "keep = -1"));
}

TEST(Prune, MakesTheFileSmaller) {
  const TempFolder folder;
  const auto path = folder / "store.db";
  Bytes freed;
  {
    Store store = Store::open(path);
    const RowId session = tests::running_session(store);
    store.append_samples(session, std::vector<NewSample>(2000, tests::small_sample()));
    store.end_session(session, WorkState::kComplete);
    freed = store.prune({.keep = 0}).freed;
  }
  EXPECT_GT(freed, 100_KiB);
  EXPECT_LT(std::filesystem::file_size(path), freed.count);
}

TEST(Examine, FindsWhatTheQuickCheckDoesNot) {
  const TempFolder folder;
  const auto path = folder / "store.db";
  { tests::running_session(*std::make_unique<Store>(Store::open(path))); }
  sql::DatabaseConnection(path, sql::DatabaseConnection::Mode::kReadWrite, std::chrono::seconds(1))
      .execute("PRAGMA foreign_keys = OFF; DELETE FROM clusters");
  const Store store = Store::open(path);
  EXPECT_THAT(store.examine(), ::testing::Contains("a row of sessions refers to one that does not exist"));
}

}  // namespace
}  // namespace commtune
