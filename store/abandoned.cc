// Ending what a process that is gone left as running.

#include "store/owner.h"
#include "store/store_impl.h"

namespace commtune {

using namespace sql;

namespace {

struct Left {
  RowId id = 0;
  std::string owner;
};

std::vector<Left> left_behind(DatabaseConnection& db, const std::string& table,
                              const std::function<bool(const std::string&)>& gone) {
  std::vector<Left> left;
  Query query = db.query("SELECT id, owner FROM " + table + " WHERE state = 'running'");
  while (query.next()) {
    Left row;
    read_values(query, row.id, row.owner);
    if (gone(row.owner)) left.push_back(std::move(row));
  }
  return left;
}

std::string why(const Left& left) { return "its process (" + left.owner + ") is gone"; }

}  // namespace

Abandoned Store::interrupt_abandoned(const std::function<bool(const std::string&)>& gone) {
  DatabaseConnection& db = impl_->db;
  Abandoned ended;
  // Mostly there is nothing, and then nobody has to wait for the right to write.
  if (left_behind(db, "runs", gone).empty() && left_behind(db, "sessions", gone).empty()) return ended;
  Transaction transaction(db);
  for (const Left& left : left_behind(db, "runs", gone)) {
    finish_run(left.id, {.state = WorkState::kInterrupted, .error = why(left)});
    ended.runs.push_back(left.id);
  }
  for (const Left& left : left_behind(db, "sessions", gone)) {
    end_session(left.id, WorkState::kInterrupted, why(left));
    ended.sessions.push_back(left.id);
  }
  transaction.commit();
  return ended;
}

}  // namespace commtune
