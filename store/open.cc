// Opening a store: whose file is it, is it whole, is it up to date.

#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <thread>

#include "store/schema.h"
#include "store/store_impl.h"

namespace commtune {

using namespace sql;

namespace {

constexpr const char* kInMemory = ":memory:";

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& why) {
  throw Error(ErrorCode::kStorage, path.string() + ": " + why);
}

/// Makes the path absolute, so that nothing in it can be taken for one of SQLite's URIs.
std::filesystem::path resolve(const std::filesystem::path& path) {
  if (path.empty()) {
    throw Error(ErrorCode::kBadInput, "path of the store: must not be empty");
  }
  return path == kInMemory ? path : std::filesystem::absolute(path).lexically_normal();
}

void prepare_place(const std::filesystem::path& path, Access wanted) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    refuse(path, "this is a folder, not a store");
  }
  if (wanted == Access::kReadOnly) {
    if (!std::filesystem::exists(path, error)) {
      throw Error(ErrorCode::kNotFound, path.string() + ": there is no store here");
    }
    return;
  }
  std::filesystem::create_directories(path.parent_path(), error);
  if (error) {
    refuse(path, "its folder cannot be created (" + error.message() + ")");
  }
  // SQLite would try again read-only and report that the file is missing.
  if (!std::filesystem::exists(path, error) && access(path.parent_path().c_str(), W_OK | X_OK) != 0) {
    refuse(path, "its folder may not be written (" + std::generic_category().message(errno) + ")");
  }
}

/// What a file says about itself.
struct Identity {
  std::int64_t application = 0;
  std::int64_t version = 0;
  std::int64_t objects = 0;  ///< tables, indexes, ...

  bool blank() const { return application == 0 && version == 0 && objects == 0; }
};

/// In one statement, so that it never sees half of what another process writes at its first opening.
Identity identify(DatabaseConnection& db) {
  sql::Query query = db.query(
      "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema)"
      " FROM pragma_application_id, pragma_user_version");
  query.next();
  Identity identity;
  identity.application = query.column_integer();
  identity.version = query.column_integer();
  identity.objects = query.column_integer();
  return identity;
}

/// Throws unless the file is ours (or blank) and of a version that this program can use.
void check_identity(const DatabaseConnection& db, const Identity& identity, Access access) {
  const int newest = newest_schema();
  if (identity.blank()) {
    if (access == Access::kReadOnly) {
      refuse(db.path(), "this is empty, not a commtune store");
    }
    return;
  }
  if (identity.application != kApplicationId) {
    refuse(db.path(), "this SQLite database belongs to another program (application id " +
                          std::to_string(identity.application) + "), it is not a commtune store");
  }
  if (identity.version > newest) {
    refuse(db.path(), "the store has version " + std::to_string(identity.version) +
                          ", written by a newer commtune; this program understands versions up to " +
                          std::to_string(newest));
  }
  if (access == Access::kReadOnly && identity.version < newest) {
    refuse(db.path(), "the store has version " + std::to_string(identity.version) +
                          "; open it once for writing to bring it to version " + std::to_string(newest));
  }
}

void check_pages(DatabaseConnection& db) {
  const std::string verdict = db.text("PRAGMA quick_check(1)");
  if (verdict != "ok") {
    refuse(db.path(), "the database is damaged (" + verdict + "): nothing was changed; restore a backup");
  }
}

/// Settings of a connection, before the file is read. None of them changes it.
void configure(DatabaseConnection& db) {
  db.execute(
      "PRAGMA foreign_keys = ON; PRAGMA synchronous = FULL; PRAGMA trusted_schema = OFF;"
      "PRAGMA cell_size_check = ON; PRAGMA journal_size_limit = 67108864");
}

/// The journal's kind and the layout of a file that has no content yet. Pages that pruning frees can be
/// handed back (incremental vacuum).
void prepare_file(DatabaseConnection& db, bool blank) {
  if (blank) {
    db.execute("PRAGMA auto_vacuum = INCREMENTAL");
  }
  db.text("PRAGMA journal_mode = WAL");
}

/// Repeats `step` while another process holds the lock: SQLite itself does not wait when it switches a file
/// over to its write-ahead log.
template <class Step>
void patiently(const DatabaseConnection& db, const Step& step) {
  using namespace std::chrono_literals;
  const auto deadline = std::chrono::steady_clock::now() + db.busy_timeout();
  for (;;) {
    try {
      step();
      return;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kConflict || std::chrono::steady_clock::now() >= deadline) {
        throw;
      }
    }
    std::this_thread::sleep_for(5ms);
  }
}

/// Makes the file ready for writing: the log, then the tables.
void bring_up_to_date(DatabaseConnection& db) {
  patiently(db, [&] {
    const Identity identity = identify(db);
    check_identity(db, identity, Access::kReadWrite);
    prepare_file(db, identity.blank());
    if (identity.version < newest_schema()) {
      migrate(db, newest_schema());
    }
  });
}

/// Whether the file has to be read without the log's shared memory: we may not create that in its folder, and
/// nobody left a log, so the file itself is complete.
bool lies_still(const std::filesystem::path& path) {
  std::error_code error;
  const auto log = std::filesystem::file_size(path.string() + "-wal", error);
  return (error || log == 0) && access(path.parent_path().c_str(), W_OK) != 0;
}

/// Whether the schema can be read; false when the folder forbids the files that readers share.
bool readable(DatabaseConnection& db) {
  try {
    identify(db);
    return true;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kStorage) {
      throw;
    }
    return false;
  }
}

}  // namespace

int Store::schema_version() { return newest_schema(); }

Store::Store(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;
Store::~Store() = default;

Store Store::open(const std::filesystem::path& given, OpenOptions options) {
  const std::filesystem::path path = resolve(given);
  if (path != kInMemory) {
    prepare_place(path, options.access);
  }
  const bool write = options.access == Access::kReadWrite;
  const auto mode = write ? DatabaseConnection::Mode::kReadWrite : DatabaseConnection::Mode::kReadOnly;
  auto impl = std::unique_ptr<Impl>(new Impl{options, DatabaseConnection(path, mode, options.busy_timeout)});
  if (!write && !readable(impl->db) && lies_still(path)) {
    impl.reset(new Impl{
        options, DatabaseConnection(path, DatabaseConnection::Mode::kImmutable, options.busy_timeout)});
  }
  DatabaseConnection& db = impl->db;
  if (write && db.read_only()) {
    refuse(path, "the file is read-only: nothing can be stored here");
  }
  configure(db);
  check_identity(db, identify(db), options.access);
  if (options.check == OpenCheck::kQuick) {
    check_pages(db);
  }
  if (write) {
    bring_up_to_date(db);
  }
  if (options.max_size) {
    db.integer("PRAGMA max_page_count = " + std::to_string(options.max_size->count / db.page_size()));
  }
  return Store(std::move(impl));
}

Store Store::reader() const {
  if (impl_->db.path() == kInMemory) {
    throw Error(ErrorCode::kBadInput, ":memory: has one connection only; use a file for several threads");
  }
  OpenOptions options = impl_->options;
  options.access = Access::kReadOnly;
  options.check = OpenCheck::kNone;
  return open(impl_->db.path(), std::move(options));
}

const std::filesystem::path& Store::path() const { return impl_->db.path(); }

void Store::atomically(const std::function<void()>& work) {
  Transaction transaction(impl_->db);
  work();
  transaction.commit();
}

void sql::require_row(DatabaseConnection& db, const std::string& table, const std::string& what, RowId id) {
  Query query = db.query("SELECT 1 FROM " + table + " WHERE id = ?");
  bind_values(query, id);
  if (!query.next()) {
    throw Error(ErrorCode::kNotFound, what + " " + std::to_string(id) + ": there is none in the store");
  }
}

}  // namespace commtune
