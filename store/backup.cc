#include "store/backup.h"

#include <sqlite3.h>

#include "perfmodel/base/error.h"

namespace commtune::sql {
namespace {

struct FinishBackup {
  void operator()(sqlite3_backup* backup) const noexcept { sqlite3_backup_finish(backup); }
};
using Backup = std::unique_ptr<sqlite3_backup, FinishBackup>;

}  // namespace

void copy_database(DatabaseConnection& from, const std::filesystem::path& target) {
  DatabaseConnection to(target, DatabaseConnection::Mode::kReadWrite, from.busy_timeout());
  const Backup backup(sqlite3_backup_init(to.handle(), "main", from.handle(), "main"));
  if (backup == nullptr) {
    to.fail(sqlite3_errcode(to.handle()));
  }
  // All pages in one step: one read transaction, so the copy is of one moment and nobody's writes restart it.
  const int code = sqlite3_backup_step(backup.get(), -1);
  if (code != SQLITE_DONE) {
    to.fail(code);
  }
}

}  // namespace commtune::sql
