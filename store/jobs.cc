#include "store/jobs.h"

#include "store/store_impl.h"

namespace commtune {

using namespace sql;

namespace {

const std::string kSelectJobs =
    "SELECT id, kind, cluster, state, requested_by, idempotency_key, owner, attempts, progress, stage, "
    "cancel_requested, error, created, started, ended, version, request, result FROM jobs";

JobRow read_job(Query& query) {
  JobRow row;
  read_values(query, row.id, row.kind, row.cluster, row.state, row.requested_by, row.idempotency_key,
              row.owner, row.attempts, row.progress, row.stage, row.cancel_requested, row.error,
              row.origin.created, row.started, row.ended, row.origin.version, row.request, row.result);
  return row;
}

JobLogLine read_line(Query& query) {
  JobLogLine line;
  read_values(query, line.id, line.at, line.text);
  return line;
}

std::string name_of(RowId id) { return "job " + std::to_string(id); }

std::optional<JobRow> find_job(DatabaseConnection& db, RowId id) {
  Query query = db.query(kSelectJobs + " WHERE id = ?");
  bind_values(query, id);
  return find_row(db, query, name_of(id), read_job);
}

JobRow require_job(DatabaseConnection& db, RowId id) {
  auto job = find_job(db, id);
  if (!job) {
    throw Error(ErrorCode::kNotFound, name_of(id) + ": there is none in the store");
  }
  return *std::move(job);
}

void require_running(DatabaseConnection& db, RowId id) {
  const JobState state = require_job(db, id).state;
  if (state != JobState::kRunning) {
    throw Error(ErrorCode::kConflict, name_of(id) + " is not running: it is " + to_string(state));
  }
}

/// The job that was queued under the same key before, if any. Throws Error{kConflict} when it asks for
/// something else.
std::optional<RowId> asked_before(DatabaseConnection& db, const NewJob& job) {
  if (job.idempotency_key.empty()) {
    return std::nullopt;
  }
  Query query = db.query(kSelectJobs + " WHERE idempotency_key = ?");
  bind_values(query, job.idempotency_key);
  const auto known = find_row(db, query, "a job", read_job);
  if (!known) {
    return std::nullopt;
  }
  if (known->kind != job.kind || known->cluster != job.cluster || known->request != job.request) {
    throw Error(ErrorCode::kConflict, "idempotency key \"" + job.idempotency_key + "\": " +
                                          name_of(known->id) + " has it and was asked for something else");
  }
  return known->id;
}

/// The oldest queued job whose cluster is free.
std::optional<RowId> next_in_turn(DatabaseConnection& db) {
  Query query = db.query(
      "SELECT id FROM jobs AS job WHERE state = 'queued' AND NOT EXISTS "
      "(SELECT 1 FROM jobs WHERE state = 'running' AND cluster = job.cluster) ORDER BY id LIMIT 1");
  return query.next() ? std::optional<RowId>(query.column_integer()) : std::nullopt;
}

/// The running jobs whose owner is gone.
std::vector<RowId> abandoned_jobs(DatabaseConnection& db,
                                  const std::function<bool(const std::string&)>& gone) {
  std::vector<RowId> abandoned;
  Query query = db.query("SELECT id, owner FROM jobs WHERE state = 'running' ORDER BY id");
  while (query.next()) {
    const RowId id = query.column_integer();
    if (gone(query.column_text())) {
      abandoned.push_back(id);
    }
  }
  return abandoned;
}

}  // namespace

std::string to_string(JobState state) {
  switch (state) {
    case JobState::kQueued:
      return "queued";
    case JobState::kRunning:
      return "running";
    case JobState::kComplete:
      return "complete";
    case JobState::kFailed:
      return "failed";
    case JobState::kCancelled:
      return "cancelled";
    case JobState::kInterrupted:
      return "interrupted";
  }
  return "unknown";
}

Jobs::Jobs(Store& store) : impl_(store.impl_.get()) {}

RowId Jobs::enqueue(const NewJob& job) {
  require(!job.kind.empty(), "job.kind", "\"\"", "must not be empty");
  DatabaseConnection& db = impl_->db;
  Transaction transaction(db);
  if (const auto known = asked_before(db, job)) {
    return *known;
  }
  if (job.cluster) {
    require_row(db, "clusters", "cluster", *job.cluster);
  }
  Query query = db.query(
      "INSERT INTO jobs (kind, cluster, state, requested_by, idempotency_key, created, version, request, "
      "token) VALUES (?, ?, 'queued', ?, ?, ?, ?, ?, ?)");
  bind_values(query, job.kind, job.cluster, job.requested_by, job.idempotency_key, impl_->now(),
              impl_->options.version, job.request, job.token)
      .run();
  const RowId id = db.last_row_id();
  transaction.commit();
  return id;
}

std::optional<JobRow> Jobs::take_next(const std::string& owner) {
  DatabaseConnection& db = impl_->db;
  Transaction transaction(db);
  const std::optional<RowId> id = next_in_turn(db);
  if (!id) {
    return std::nullopt;
  }
  Query query = db.query(
      "UPDATE jobs SET state = 'running', owner = ?, attempts = attempts + 1, started = ?, ended = NULL, "
      "progress = 0, stage = '', error = '' WHERE id = ?");
  bind_values(query, owner, impl_->now(), *id).run();
  transaction.commit();
  return find_job(db, *id);
}

void Jobs::report(RowId id, double progress, const std::string& stage) {
  require(progress >= 0 && progress <= 1, "progress", std::to_string(progress), "must be 0 to 1");
  DatabaseConnection& db = impl_->db;
  Transaction transaction(db);
  require_running(db, id);
  Query query = db.query("UPDATE jobs SET progress = ?, stage = ? WHERE id = ?");
  bind_values(query, progress, stage, id).run();
  transaction.commit();
}

void Jobs::append_log(RowId id, std::string_view line) {
  DatabaseConnection& db = impl_->db;
  Transaction transaction(db);
  require_row(db, "jobs", "job", id);
  Query query = db.query("INSERT INTO job_log (job, at, line) VALUES (?, ?, ?)");
  bind_values(query, id, impl_->now(), line).run();
  transaction.commit();
}

JobState Jobs::request_cancel(RowId id) {
  DatabaseConnection& db = impl_->db;
  Transaction transaction(db);
  JobState state = require_job(db, id).state;
  if (state == JobState::kQueued) {
    state = JobState::kCancelled;
    Query query = db.query("UPDATE jobs SET state = ?, cancel_requested = 1, ended = ? WHERE id = ?");
    bind_values(query, state, impl_->now(), id).run();
  } else if (state == JobState::kRunning) {
    Query query = db.query("UPDATE jobs SET cancel_requested = 1 WHERE id = ?");
    bind_values(query, id).run();
  }
  transaction.commit();
  return state;
}

bool Jobs::cancel_requested(RowId id) const { return require_job(impl_->db, id).cancel_requested; }

void Jobs::finish(RowId id, JobState state, const nlohmann::json& result, const std::string& error) {
  require(state != JobState::kQueued && state != JobState::kRunning, "state", to_string(state),
          "a job ends in another state");
  DatabaseConnection& db = impl_->db;
  Transaction transaction(db);
  require_running(db, id);
  Query query = db.query(
      "UPDATE jobs SET state = ?, progress = iif(? = 'complete', 1, progress), ended = ?, error = ?, "
      "result = ? WHERE id = ?");
  bind_values(query, state, state, impl_->now(), error, result, id).run();
  transaction.commit();
}

std::vector<RowId> Jobs::interrupt_abandoned(const std::function<bool(const std::string&)>& gone) {
  DatabaseConnection& db = impl_->db;
  Transaction transaction(db);
  std::vector<RowId> abandoned = abandoned_jobs(db, gone);
  for (const RowId id : abandoned) {
    finish(id, JobState::kInterrupted, nullptr, "the process that did it is gone");
  }
  transaction.commit();
  return abandoned;
}

void Jobs::requeue(RowId id, std::optional<TokenId> token) {
  DatabaseConnection& db = impl_->db;
  Transaction transaction(db);
  const JobState state = require_job(db, id).state;
  if (state != JobState::kInterrupted && state != JobState::kFailed) {
    throw Error(ErrorCode::kConflict, name_of(id) + " cannot be queued again: it is " + to_string(state));
  }
  Query query = db.query(
      "UPDATE jobs SET state = 'queued', cancel_requested = 0, ended = NULL, token = coalesce(?, token) "
      "WHERE id = ?");
  bind_values(query, token, id).run();
  transaction.commit();
}

std::optional<JobRow> Jobs::find(RowId id) const { return find_job(impl_->db, id); }

PageOf<JobRow> Jobs::list(const Page& page) const {
  return list_rows(impl_->db, kSelectJobs, {}, {"id"}, page, read_job);
}

PageOf<JobLogLine> Jobs::log(RowId id, const Page& page) const {
  return list_rows(impl_->db, "SELECT id, at, line FROM job_log", {"job", id},
                   {"id", Direction::kOldestFirst}, page, read_line);
}

}  // namespace commtune
