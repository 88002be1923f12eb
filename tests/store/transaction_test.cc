// What happens when a write does not go through: another writer, no space, an exception half way.

#include <sys/mount.h>

#include <cerrno>
#include <cstring>

#include "store/database_connection.h"
#include "tests/store/processes.h"
#include "tests/store/support.h"

namespace commtune {
namespace {

using tests::bare_cluster;
using tests::error_of;
using tests::IsError;
using tests::TempFolder;
using namespace std::chrono_literals;

TEST(Atomically, KeepsAllOrNothing) {
  Store store = tests::memory_store();
  store.atomically([&] {
    store.put_cluster(bare_cluster("a"));
    store.put_cluster(bare_cluster("b"));
  });
  EXPECT_EQ(store.clusters().rows.size(), 2U);
  EXPECT_THROW(store.atomically([&] {
    store.put_cluster(bare_cluster("c"));
    throw Error(ErrorCode::kInterrupted, "stopped");
  }),
               Error);
  EXPECT_EQ(store.clusters().rows.size(), 2U);
}

TEST(Atomically, AnInnerFailureThatIsCaughtUndoesItsOwnPartOnly) {
  Store store = tests::memory_store();
  store.atomically([&] {
    store.put_cluster(bare_cluster("outer"));
    EXPECT_THROW(store.atomically([&] {
      store.put_cluster(bare_cluster("inner"));
      throw Error(ErrorCode::kInterrupted, "stopped");
    }),
                 Error);
  });
  EXPECT_TRUE(store.find_cluster("outer"));
  EXPECT_FALSE(store.find_cluster("inner"));
}

TEST(Lock, AWriterThatWaitsInVainSaysSoAndReadersDoNotWait) {
  const TempFolder folder;
  const auto path = folder / "store.db";
  Store store = Store::open(path, {.busy_timeout = 20ms});
  store.put_cluster(bare_cluster());
  sql::DatabaseConnection other(path, sql::DatabaseConnection::Mode::kReadWrite, 1s);
  other.execute("BEGIN IMMEDIATE");
  EXPECT_THAT(error_of([&] { store.put_cluster(bare_cluster("attic")); }),
              IsError(ErrorCode::kConflict, "has kept it locked for longer than 20 ms"));
  EXPECT_TRUE(store.find_cluster("lab"));
  EXPECT_TRUE(store.reader().find_cluster("lab"));
  other.execute("COMMIT");
  store.put_cluster(bare_cluster("attic"));
}

TEST(Lock, AStoreOpensWhileAnotherProcessWrites) {
  const TempFolder folder;
  const auto path = folder / "store.db";
  Store store = Store::open(path);
  sql::DatabaseConnection other(path, sql::DatabaseConnection::Mode::kReadWrite, 1s);
  other.execute("BEGIN IMMEDIATE");
  EXPECT_TRUE(Store::open(path, {.busy_timeout = 20ms}).clusters().rows.empty());
}

/// Appends samples of 8 KiB until the store refuses; how many it took.
std::size_t fill(Store& store, RowId session) {
  NewSample sample = tests::small_sample();
  sample.raw_seconds.assign(1024, 1e-3);
  std::size_t stored = 0;
  const Error error = error_of([&] {
    for (; stored < 10000; ++stored) {
      store.append_sample(session, sample);
    }
  });
  EXPECT_THAT(error, IsError(ErrorCode::kStorage,
                             "the disk is full: this was not stored; everything stored before it is intact"));
  return stored;
}

void expect_whole(const std::filesystem::path& path) {
  sql::DatabaseConnection connection(path, sql::DatabaseConnection::Mode::kReadOnly, 1s);
  EXPECT_EQ(connection.text("PRAGMA integrity_check"), "ok");
}

TEST(FullDisk, LosesNothingThatWasStoredBefore) {
  const TempFolder folder;
  const auto path = folder / "store.db";
  RowId session = 0;
  std::size_t stored = 0;
  {
    Store store = Store::open(path, {.max_size = 1_MiB});
    session = tests::running_session(store);
    stored = fill(store, session);
    EXPECT_GT(stored, 50U);
    EXPECT_EQ(store.all_samples(session).size(), stored);
    // The refusal is not the end: what needs no further page is still stored.
    store.end_session(session, WorkState::kFailed, "the disk is full");
  }
  expect_whole(path);
  Store store = Store::open(path);
  EXPECT_EQ(store.all_samples(session).size(), stored);
  EXPECT_EQ(store.find_session(session)->error, "the disk is full");
  store.resume_session(session, "");
  store.append_sample(session, tests::small_sample());  // there is space again
}

TEST(FullDisk, UndoesTheWholeTransactionEvenIfTheFailureInItIsSwallowed) {
  const TempFolder folder;
  Store store = Store::open(folder / "store.db", {.max_size = 1_MiB});
  const RowId session = tests::running_session(store);
  EXPECT_THROW(store.atomically([&] {
    fill(store, session);
    store.put_cluster(bare_cluster("attic"));
  }),
               Error);
  EXPECT_TRUE(store.all_samples(session).empty());
  EXPECT_FALSE(store.find_cluster("attic"));
  store.put_cluster(bare_cluster("attic"));
}

/// A file system of a given size in memory. Making one takes root and the right to mount.
class SmallDisk {
 public:
  explicit SmallDisk(const char* options) {
    mounted_ = mount("none", folder_.path().c_str(), "tmpfs", 0, options) == 0;
  }
  ~SmallDisk() {
    if (mounted_) {
      umount2(folder_.path().c_str(), MNT_DETACH);
    }
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  bool mounted() const { return mounted_; }
  std::filesystem::path operator/(const char* name) const { return folder_ / name; }

 private:
  TempFolder folder_;
  bool mounted_ = false;
};

TEST(FullDisk, ForRealLosesNothingThatWasStoredBefore) {
  const SmallDisk disk("size=1m");
  if (!disk.mounted()) {
    GTEST_SKIP() << "a small disk cannot be mounted here: " << std::strerror(errno);
  }
  const auto path = disk / "store.db";
  RowId session = 0;
  std::size_t stored = 0;
  {
    Store store = Store::open(path);
    session = tests::running_session(store);
    stored = fill(store, session);
    EXPECT_GT(stored, 20U);
    EXPECT_EQ(store.all_samples(session).size(), stored);
  }
  const Store store = Store::open(path);
  EXPECT_EQ(store.all_samples(session).size(), stored);
  expect_whole(path);
}

TEST(FullDisk, ForRealRefusesANewStore) {
  const SmallDisk disk("size=8k");
  if (!disk.mounted()) {
    GTEST_SKIP() << "a small disk cannot be mounted here: " << std::strerror(errno);
  }
  EXPECT_THAT(error_of([&] { Store::open(disk / "store.db"); }),
              IsError(ErrorCode::kStorage, "the disk is full"));
}

}  // namespace
}  // namespace commtune
