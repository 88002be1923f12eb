// Probe sessions: what was asked for, and how it ended.

#include "store/store_impl.h"

namespace commtune {

using namespace sql;

namespace {

const std::string kSelectSessions =
    "SELECT id, cluster, state, resumable, resumed, budget_seconds, owner, created, ended, version, error, "
    "settings, (SELECT count(*) FROM samples WHERE session = sessions.id) FROM sessions";

SessionRow read_session(Query& query) {
  SessionRow row;
  read_values(query, row.id, row.cluster, row.state, row.resumable, row.resumed, row.budget, row.owner,
              row.origin.created, row.ended, row.origin.version, row.error, row.settings, row.samples);
  return row;
}

SessionRow require_session(const Store& store, RowId id) {
  std::optional<SessionRow> session = store.find_session(id);
  if (!session) {
    throw Error(ErrorCode::kNotFound, "session " + std::to_string(id) + ": there is none in the store");
  }
  return *std::move(session);
}

void refuse_second(const Store& store, RowId cluster) {
  if (const auto running = store.running_session(cluster)) {
    throw Error(ErrorCode::kConflict,
                "session " + std::to_string(running->id) + " is probing this cluster since " +
                    to_iso8601(running->origin.created) +
                    (running->owner.empty() ? "" : " (" + running->owner + ")") + ": one at a time");
  }
}

}  // namespace

RowId Store::start_session(const NewSession& session) {
  DatabaseConnection& db = impl_->db;
  Transaction transaction(db);
  require_row(db, "clusters", "cluster", session.cluster);
  refuse_second(*this, session.cluster);
  Query query = db.query(
      "INSERT INTO sessions (cluster, state, resumable, budget_seconds, owner, created, version, settings) "
      "VALUES (?, 'running', ?, ?, ?, ?, ?, ?)");
  bind_values(query, session.cluster, session.resumable, session.budget, session.owner, impl_->now(),
              impl_->options.version, session.settings)
      .run();
  const RowId id = db.last_row_id();
  transaction.commit();
  return id;
}

void Store::resume_session(RowId id, const std::string& owner) {
  DatabaseConnection& db = impl_->db;
  Transaction transaction(db);
  const SessionRow session = require_session(*this, id);
  refuse_second(*this, session.cluster);
  if (!session.resumable || session.state == WorkState::kComplete) {
    throw Error(ErrorCode::kConflict, "session " + std::to_string(id) + " cannot be resumed: it is " +
                                          (session.resumable ? to_string(session.state) : "not resumable"));
  }
  Query query = db.query(
      "UPDATE sessions SET state = 'running', ended = NULL, error = '', owner = ?, resumed = resumed + 1 "
      "WHERE id = ?");
  bind_values(query, owner, id).run();
  transaction.commit();
}

void Store::end_session(RowId id, WorkState state, const std::string& error) {
  require(state != WorkState::kRunning, "state", to_string(state), "a session ends in another state");
  DatabaseConnection& db = impl_->db;
  Transaction transaction(db);
  const SessionRow session = require_session(*this, id);
  if (session.state != WorkState::kRunning) {
    throw Error(ErrorCode::kConflict,
                "session " + std::to_string(id) + " has ended already: " + to_string(session.state));
  }
  Query query = db.query("UPDATE sessions SET state = ?, ended = ?, error = ? WHERE id = ?");
  bind_values(query, state, impl_->now(), error, id).run();
  transaction.commit();
}

std::optional<SessionRow> Store::find_session(RowId id) const {
  Query query = impl_->db.query(kSelectSessions + " WHERE id = ?");
  bind_values(query, id);
  return find_row(impl_->db, query, "session " + std::to_string(id), read_session);
}

std::optional<SessionRow> Store::running_session(RowId cluster) const {
  Query query = impl_->db.query(kSelectSessions + " WHERE cluster = ? AND state = 'running'");
  bind_values(query, cluster);
  return find_row(impl_->db, query, "a session", read_session);
}

std::optional<SessionRow> Store::resumable_session(RowId cluster) const {
  Query query = impl_->db.query(kSelectSessions + " WHERE cluster = ? ORDER BY id DESC LIMIT 1");
  bind_values(query, cluster);
  auto session = find_row(impl_->db, query, "a session", read_session);
  const bool takes_up = session && session->resumable &&
                        (session->state == WorkState::kInterrupted || session->state == WorkState::kFailed);
  return takes_up ? session : std::nullopt;
}

PageOf<SessionRow> Store::sessions(std::optional<RowId> cluster, const Page& page) const {
  return list_rows(impl_->db, kSelectSessions, {"cluster", cluster}, {"id"}, page, read_session);
}

}  // namespace commtune
