// Backup, pruning and examination.

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "store/backup.h"
#include "store/store_impl.h"

namespace commtune {

using namespace sql;

namespace {

[[noreturn]] void fail_with_errno(const std::filesystem::path& path, const std::string& what) {
  throw Error(ErrorCode::kStorage,
              path.string() + ": " + what + " (" + std::generic_category().message(errno) + ")");
}

/// Makes a file's or folder's content survive a loss of power.
void write_out(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    fail_with_errno(path, "cannot be opened");
  }
  const int result = fsync(file);
  close(file);
  if (result != 0) {
    fail_with_errno(path, "cannot be written out");
  }
}

/// A new folder of a random name that is ours alone. SQLite opens by name, and makes its journal beside a
/// database: in a folder that others can write to, a link could lie in wait under these names. Removed again
/// with what was not moved out of it.
class PrivateFolder {
 public:
  explicit PrivateFolder(const std::filesystem::path& parent) {
    std::string name = (parent / ".commtune-backup-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
      fail_with_errno(parent, "no backup can be written here");
    }
    path_ = name;
  }
  ~PrivateFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;

  std::filesystem::path operator/(const char* name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

// Which rows may go. ?1: what is older; ?2: how many of the newest stay, for each cluster.
constexpr const char* kOldRuns =
    "state <> 'running' AND created < ?1 AND id NOT IN (SELECT id FROM (SELECT id, row_number() OVER "
    "(PARTITION BY cluster ORDER BY id DESC) AS place FROM runs) WHERE place <= ?2)";
constexpr const char* kOldPlans =
    "created < ?1 AND id NOT IN (SELECT id FROM (SELECT id, row_number() OVER "
    "(PARTITION BY cluster ORDER BY id DESC) AS place FROM plans) WHERE place <= ?2) "
    "AND id NOT IN (SELECT plan FROM runs)";
constexpr const char* kOldFits =
    "created < ?1 AND id NOT IN (SELECT id FROM (SELECT id, row_number() OVER "
    "(PARTITION BY cluster ORDER BY id DESC) AS place FROM fits) WHERE place <= max(?2, 1)) "
    "AND id NOT IN (SELECT fit FROM plans WHERE fit IS NOT NULL)";
constexpr const char* kOldSessions =
    "state <> 'running' AND created < ?1 AND id NOT IN (SELECT id FROM (SELECT id, row_number() OVER "
    "(PARTITION BY cluster ORDER BY id DESC) AS place FROM sessions) WHERE place <= ?2) "
    "AND id NOT IN (SELECT session FROM fits) "
    "AND NOT (state <> 'complete' AND resumable AND id IN (SELECT max(id) FROM sessions GROUP BY cluster))";
constexpr const char* kOldProfiles =
    "created < ?1 AND id NOT IN (SELECT id FROM profiles ORDER BY id DESC LIMIT ?2) "
    "AND id NOT IN (SELECT profile FROM plans)";
constexpr const char* kOldJobs =
    "state NOT IN ('queued', 'running') AND created < ?1 AND id NOT IN (SELECT id FROM (SELECT id, "
    "row_number() OVER (PARTITION BY cluster ORDER BY id DESC) AS place FROM jobs) WHERE place <= ?2)";
// A cluster that was replaced under its name, and that nothing refers to any more.
constexpr const char* kOldClusters =
    "seen < ?1 AND id NOT IN (SELECT id FROM (SELECT id, row_number() OVER "
    "(PARTITION BY name ORDER BY seen_order DESC) AS place FROM clusters) WHERE place <= max(?2, 1)) "
    "AND id NOT IN (SELECT cluster FROM sessions) AND id NOT IN (SELECT cluster FROM fits) "
    "AND id NOT IN (SELECT cluster FROM plans WHERE cluster IS NOT NULL) "
    "AND id NOT IN (SELECT cluster FROM runs WHERE cluster IS NOT NULL) "
    "AND id NOT IN (SELECT cluster FROM jobs WHERE cluster IS NOT NULL)";

/// Deletes and counts.
class Pruner {
 public:
  Pruner(DatabaseConnection& db, const PruneOptions& options)
      : db_(db),
        before_(options.before ? to_iso8601(*options.before) : std::string("9999")),
        keep_(options.keep.value_or(0)) {}

  std::int64_t remove(const std::string& table, const std::string& condition) {
    Query query = db_.query("DELETE FROM " + table + " WHERE " + condition);
    bind_values(query, before_, keep_).run();
    return db_.changes();
  }

  /// From what refers to what is referred to, so that each step sees what the one before has left.
  PruneReport run() {
    PruneReport report;
    report.jobs = remove("jobs", kOldJobs);
    report.runs = remove("runs", kOldRuns);
    report.plans = remove("plans", kOldPlans);
    report.fits = remove("fits", kOldFits);
    report.samples =
        remove("samples", std::string("session IN (SELECT id FROM sessions WHERE ") + kOldSessions + ")");
    report.sessions = remove("sessions", kOldSessions);
    report.profiles = remove("profiles", kOldProfiles);
    report.clusters = remove("clusters", kOldClusters);
    return report;
  }

 private:
  DatabaseConnection& db_;
  std::string before_;
  int keep_;
};

Bytes file_size(DatabaseConnection& db) {
  return {static_cast<std::uint64_t>(db.integer("PRAGMA page_count")) * db.page_size()};
}

}  // namespace

void Store::backup(const std::filesystem::path& target) const {
  const auto place = std::filesystem::absolute(target).lexically_normal();
  std::error_code error;
  if (place == path() || std::filesystem::equivalent(place, path(), error)) {
    throw Error(ErrorCode::kBadInput, place.string() + ": a store cannot be its own backup");
  }
  if (std::filesystem::exists(place.string() + "-wal", error)) {
    throw Error(ErrorCode::kConflict,
                place.string() +
                    ": this is in use as a store, or was when its process was killed; give the "
                    "backup another name");
  }
  const PrivateFolder folder(place.parent_path());
  const std::filesystem::path partial = folder / "backup.db";
  copy_database(impl_->db, partial);
  open(partial, {.access = Access::kReadOnly});  // whole, ours, of this version
  write_out(partial);
  std::filesystem::rename(partial, place, error);
  if (error) {
    throw Error(ErrorCode::kStorage, place.string() + ": cannot be replaced (" + error.message() + ")");
  }
  write_out(place.parent_path());
}

PruneReport Store::prune(const PruneOptions& options) {
  require(options.before || options.keep, "prune", "everything",
          "say what is old: an age, or how many to keep");
  require(!options.keep || *options.keep >= 0, "keep", std::to_string(options.keep.value_or(0)),
          "must be at least 0");
  DatabaseConnection& db = impl_->db;
  PruneReport report;
  {
    Transaction transaction(db);
    report = Pruner(db, options).run();
    if (options.before) {
      Query query = db.query("DELETE FROM answers WHERE claimed < ?");
      bind_values(query, *options.before).run();
      report.answers = db.changes();
    }
    if (options.dry_run) {
      return report;
    }
    transaction.commit();
  }
  const Bytes before = file_size(db);
  db.execute("PRAGMA incremental_vacuum");
  report.freed = before - file_size(db);
  return report;
}

std::int64_t Store::data_version() const { return impl_->db.integer("PRAGMA data_version"); }

std::vector<std::string> Store::examine() const {
  std::vector<std::string> findings;
  Query pages = impl_->db.query("PRAGMA integrity_check(20)");
  while (pages.next()) {
    findings.push_back(pages.column_text());
  }
  if (findings == std::vector<std::string>{"ok"}) {
    findings.clear();
  }
  Query references = impl_->db.query("PRAGMA foreign_key_check");
  while (references.next()) {
    const std::string table = references.column_text();
    findings.push_back("a row of " + table + " refers to one that does not exist");
  }
  return findings;
}

}  // namespace commtune
