// Opening: whose file is it, is it whole, may we write.

#include <algorithm>
#include <fstream>
#include <iterator>

#include "store/database_connection.h"
#include "tests/store/processes.h"
#include "tests/store/support.h"

namespace commtune {
namespace {

using tests::bare_cluster;
using tests::error_of;
using tests::error_without_rights;
using tests::IsError;
using tests::TempFolder;
using namespace std::chrono_literals;

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_file(const std::filesystem::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

constexpr std::ptrdiff_t kPage = 4096;

/// SQL on a file behind the store's back.
void run_sql(const std::filesystem::path& path, const std::string& sql) {
  sql::DatabaseConnection(path, sql::DatabaseConnection::Mode::kReadWrite, 1s).execute(sql);
}

/// A store with a few hundred samples, closed.
void make_store(const std::filesystem::path& path) {
  Store store = Store::open(path);
  const RowId session = tests::running_session(store);
  store.append_samples(session, std::vector<NewSample>(300, tests::small_sample()));
}

TEST(Open, CreatesTheFileAndItsFolders) {
  const TempFolder folder;
  const auto path = folder / "a/b/store.db";
  Store::open(path).put_cluster(bare_cluster());
  EXPECT_TRUE(Store::open(path).find_cluster("lab"));
}

TEST(Open, MarksTheFileAsOurs) {
  const TempFolder folder;
  Store::open(folder / "store.db");
  // SQLite's file format, section 1.3: user version at offset 60, application id at 68, big-endian.
  const std::string header = read_file(folder / "store.db").substr(0, 100);
  EXPECT_EQ(header.substr(68, 4), "comt");
  EXPECT_EQ(static_cast<int>(header.at(63)), Store::schema_version());
}

TEST(Open, LeavesNoFurtherFilesBehind) {
  const TempFolder folder;
  make_store(folder / "store.db");
  const std::filesystem::directory_iterator files(folder.path());
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);
}

TEST(Open, TakesAnEmptyFileAsNew) {
  const TempFolder folder;
  write_file(folder / "store.db", "");
  Store::open(folder / "store.db").put_cluster(bare_cluster());
}

TEST(Open, TakesPathsAsTheyAre) {
  const TempFolder folder;
  for (const char* name : {"file:a?mode=memory", "b%20#?.db", "\xc3\xa4 \xe2\x82\xac.db"}) {
    Store::open(folder / name);
    EXPECT_TRUE(std::filesystem::is_regular_file(folder / name)) << name;
    EXPECT_TRUE(Store::open(folder / name, {.access = Access::kReadOnly}).clusters().rows.empty());
  }
  EXPECT_THAT(error_of([] { Store::open(""); }), IsError(ErrorCode::kBadInput, "must not be empty"));
}

TEST(Open, RefusesWhatIsNoDatabase) {
  const TempFolder folder;
  const auto path = folder / "notes.txt";
  for (const std::string& content : {std::string("short"), std::string(10000, 'x')}) {
    write_file(path, content);
    EXPECT_THAT(error_of([&] { Store::open(path); }), IsError(ErrorCode::kStorage, "this is not a database"));
    EXPECT_THAT(error_of([&] { Store::open(path, {.access = Access::kReadOnly}); }),
                IsError(ErrorCode::kStorage, "this is not a database"));
    EXPECT_EQ(read_file(path), content);
  }
}

TEST(Open, RefusesAnotherProgramsDatabase) {
  const TempFolder folder;
  const auto path = folder / "other.db";
  run_sql(path, "CREATE TABLE bookmarks (url TEXT); PRAGMA user_version = 1");
  const std::string before = read_file(path);
  EXPECT_THAT(error_of([&] { Store::open(path); }),
              IsError(ErrorCode::kStorage, "belongs to another program"));
  run_sql(path, "PRAGMA application_id = 252006675");
  EXPECT_THAT(error_of([&] { Store::open(path); }), IsError(ErrorCode::kStorage, "252006675"));
  run_sql(path, "PRAGMA application_id = 0");
  EXPECT_EQ(read_file(path).substr(100), before.substr(100));
}

TEST(Open, RefusesANewerVersionAndSaysWhichItHasAndWhichWeUnderstand) {
  const TempFolder folder;
  const auto path = folder / "store.db";
  make_store(path);
  run_sql(path, "PRAGMA user_version = 1000");
  const std::string before = read_file(path);
  EXPECT_THAT(error_of([&] { Store::open(path); }),
              IsError(ErrorCode::kStorage,
                      "the store has version 1000, written by a newer commtune; this program understands "
                      "versions up to " +
                          std::to_string(Store::schema_version())));
  EXPECT_EQ(read_file(path), before);
}

TEST(Open, RefusesFoldersAndPlacesThatCannotBe) {
  const TempFolder folder;
  EXPECT_THAT(error_of([&] { Store::open(folder.path()); }),
              IsError(ErrorCode::kStorage, "this is a folder"));
  write_file(folder / "file", "x");
  EXPECT_THAT(error_of([&] { Store::open(folder / "file/store.db"); }),
              IsError(ErrorCode::kStorage, "its folder cannot be created (Not a directory)"));
}

TEST(OpenReadOnly, NeedsAStore) {
  const TempFolder folder;
  const OpenOptions read_only{.access = Access::kReadOnly};
  EXPECT_THAT(error_of([&] { Store::open(folder / "none.db", read_only); }),
              IsError(ErrorCode::kNotFound, "there is no store here"));
  write_file(folder / "empty.db", "");
  EXPECT_THAT(error_of([&] { Store::open(folder / "empty.db", read_only); }),
              IsError(ErrorCode::kStorage, "this is empty"));
}

TEST(OpenReadOnly, ReadsAndRefusesToWrite) {
  const TempFolder folder;
  make_store(folder / "store.db");
  Store store = Store::open(folder / "store.db", {.access = Access::kReadOnly});
  EXPECT_TRUE(store.find_cluster("lab"));
  EXPECT_THAT(error_of([&] { store.put_cluster(bare_cluster("attic")); }),
              IsError(ErrorCode::kStorage, "read-only"));
}

TEST(OpenReadOnly, SeesWhatAWriterHasJustStored) {
  const TempFolder folder;
  Store writer = Store::open(folder / "store.db");
  writer.put_cluster(bare_cluster());
  const Store reader = Store::open(folder / "store.db", {.access = Access::kReadOnly});
  EXPECT_TRUE(reader.find_cluster("lab"));
  writer.put_cluster(bare_cluster("attic"));
  EXPECT_TRUE(reader.find_cluster("attic"));
}

TEST(OpenReadOnly, WorksInAFolderThatMayNotBeWritten) {
  const TempFolder folder;
  make_store(folder / "store.db");
  tests::forbid_writing(folder.path());
  EXPECT_EQ(error_without_rights([&] {
              const Store store = Store::open(folder / "store.db", {.access = Access::kReadOnly});
              if (!store.find_cluster("lab")) {
                throw Error(ErrorCode::kNotFound, "the cluster is not there");
              }
            }),
            "");
}

TEST(Open, SaysThatAFileIsReadOnly) {
  const TempFolder folder;
  const auto path = folder / "store.db";
  make_store(path);
  std::filesystem::permissions(path, std::filesystem::perms(0444));
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0777));
  EXPECT_THAT(error_without_rights([&] { Store::open(path); }),
              ::testing::HasSubstr("store.db: the file is read-only: nothing can be stored here"));
}

TEST(Open, SaysThatAFolderIsReadOnly) {
  const TempFolder folder;
  tests::forbid_writing(folder.path());
  EXPECT_THAT(error_without_rights([&] { Store::open(folder / "store.db"); }),
              ::testing::HasSubstr("store.db: its folder may not be written (Permission denied)"));
  EXPECT_THAT(error_without_rights([&] { Store::open(folder / "a/store.db"); }),
              ::testing::HasSubstr("its folder cannot be created (Permission denied)"));
}

TEST(Open, NoticesADamagedPageAndChangesNothing) {
  const TempFolder folder;
  const auto path = folder / "store.db";
  make_store(path);
  std::string content = read_file(path);
  ASSERT_GT(content.size(), std::size_t{20} * kPage);
  std::fill_n(content.begin() + 12 * kPage, kPage, '\x5a');
  write_file(path, content);
  EXPECT_THAT(error_of([&] { Store::open(path); }),
              IsError(ErrorCode::kStorage, "the database is damaged ("));
  EXPECT_THAT(error_of([&] { Store::open(path, {.access = Access::kReadOnly}); }),
              IsError(ErrorCode::kStorage, "the database is damaged ("));
  EXPECT_EQ(read_file(path), content);
}

TEST(Open, NoticesATruncatedFile) {
  const TempFolder folder;
  const auto path = folder / "store.db";
  make_store(path);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  EXPECT_THAT(error_of([&] { Store::open(path); }), IsError(ErrorCode::kStorage, "the database is damaged"));
}

TEST(Open, WithoutTheCheckDamageShowsWhenItIsRead) {
  const TempFolder folder;
  const auto path = folder / "store.db";
  make_store(path);
  std::string content = read_file(path);
  std::fill(content.end() - 4 * kPage, content.end(), '\x5a');
  write_file(path, content);
  const Store store = Store::open(path, {.access = Access::kReadOnly, .check = OpenCheck::kNone});
  EXPECT_THAT(error_of([&] { store.all_samples(1); }), IsError(ErrorCode::kStorage, "damaged"));
}

TEST(Open, ARowThatMakesNoSenseIsNamed) {
  const TempFolder folder;
  const auto path = folder / "store.db";
  make_store(path);
  run_sql(path, "UPDATE clusters SET hosts = '[{\"name\": 3}]'");
  const Store store = Store::open(path);
  EXPECT_THAT(error_of([&] { store.find_cluster(RowId{1}); }),
              IsError(ErrorCode::kStorage, "cluster 1 is damaged"));
}

TEST(Open, OfManyProcessesAtOnceCreatesOneStore) {
  const TempFolder folder;
  const auto path = folder / "store.db";
  std::vector<std::unique_ptr<tests::ChildProcess>> children;
  for (const char* name : {"a", "b", "c", "d"}) {
    children.push_back(std::make_unique<tests::ChildProcess>(
        [&path, name](int) { Store::open(path).put_cluster(bare_cluster(name)); }));
  }
  for (const auto& child : children) {
    EXPECT_EQ(child->read_text(), "");
    EXPECT_EQ(child->wait(), 0);
  }
  EXPECT_EQ(Store::open(path).clusters().rows.size(), 4U);
}

TEST(Reader, IsAnotherConnectionThatOnlyReads) {
  const TempFolder folder;
  Store store = Store::open(folder / "store.db");
  store.put_cluster(bare_cluster());
  Store reader = store.reader();
  EXPECT_EQ(reader.path(), store.path());
  EXPECT_TRUE(reader.find_cluster("lab"));
  EXPECT_THAT(error_of([&] { reader.put_cluster(bare_cluster("attic")); }),
              IsError(ErrorCode::kStorage, "read-only"));
  EXPECT_THAT(error_of([] { tests::memory_store().reader(); }), IsError(ErrorCode::kBadInput, ":memory:"));
}

}  // namespace
}  // namespace commtune
