// Runs: what plans took when they were executed.

#include "store/store_impl.h"

namespace commtune {

using namespace sql;

namespace {

const std::string kRunsSummary =
    "SELECT runs.id, runs.plan, runs.cluster, coalesce(clusters.name, ''), plans.method, plans.model, "
    "plans.workers, runs.state, runs.attested, coalesce(json_extract(runs.settings, '$.workload'), ''), "
    "runs.iterations, plans.predicted_seconds, runs.median_seconds, runs.low_seconds, "
    "runs.high_seconds, runs.error, runs.trace_path, runs.differences, runs.ended, runs.created, "
    "runs.version";
const std::string kFromRuns =
    " FROM runs JOIN plans ON plans.id = runs.plan LEFT JOIN clusters ON clusters.id = runs.cluster";
const std::string kSelectRunsSummary = kRunsSummary + kFromRuns;
const std::string kSelectRuns =
    kRunsSummary + ", runs.iteration_seconds, runs.hosts, runs.versions, runs.settings, runs.messages" +
    kFromRuns;

void read_summary(Query& query, RunSummary& row) {
  read_values(query, row.id, row.plan, row.cluster, row.cluster_name, row.method, row.model, row.workers,
              row.state, row.attested, row.workload, row.iterations, row.predicted, row.median, row.low,
              row.high, row.error, row.trace_path, row.differences, row.ended, row.origin.created,
              row.origin.version);
}

RunSummary read_run_summary(Query& query) {
  RunSummary row;
  read_summary(query, row);
  return row;
}

RunRow read_run(Query& query) {
  RunRow row;
  read_summary(query, row);
  read_values(query, row.iteration_seconds, row.hosts, row.versions, row.settings, row.messages);
  return row;
}

void check_result(const RunResult& result) {
  require(result.state != WorkState::kRunning, "state", to_string(result.state),
          "a run ends in another state");
  check_duration("result.median", result.median);
  check_duration("result.low", result.low);
  check_duration("result.high", result.high);
  for (const double seconds : result.iteration_seconds) {
    check_duration("result.iteration_seconds", Seconds{seconds});
  }
}

/// Throws Error{kNotFound} or Error{kConflict} unless the run is running.
void require_open_run(DatabaseConnection& db, RowId id) {
  Query query = db.query("SELECT state FROM runs WHERE id = ?");
  bind_values(query, id);
  if (!query.next()) {
    throw Error(ErrorCode::kNotFound, "run " + std::to_string(id) + ": there is none in the store");
  }
  const std::string state = query.column_text();
  if (state != to_string(WorkState::kRunning)) {
    throw Error(ErrorCode::kConflict, "run " + std::to_string(id) + " has ended already: " + state);
  }
}

}  // namespace

RowId Store::start_run(const NewRun& run) {
  DatabaseConnection& db = impl_->db;
  Transaction transaction(db);
  require_row(db, "plans", "plan", run.plan);
  if (run.cluster) {
    require_row(db, "clusters", "cluster", *run.cluster);
  }
  Query query = db.query(
      "INSERT INTO runs (plan, cluster, state, created, version, hosts, versions, settings, owner, attested, "
      "token) VALUES (?, ?, 'running', ?, ?, ?, ?, ?, ?, ?, ?)");
  bind_values(query, run.plan, run.cluster, impl_->now(), impl_->options.version, run.hosts, run.versions,
              run.settings, run.owner, run.attested, run.token)
      .run();
  const RowId id = db.last_row_id();
  transaction.commit();
  return id;
}

void Store::finish_run(RowId id, const RunResult& result) {
  check_result(result);
  DatabaseConnection& db = impl_->db;
  Transaction transaction(db);
  require_open_run(db, id);
  Query query = db.query(
      "UPDATE runs SET state = ?, iterations = ?, median_seconds = ?, low_seconds = ?, high_seconds = ?, "
      "error = ?, trace_path = ?, ended = ?, iteration_seconds = ?, messages = ?, differences = ? "
      "WHERE id = ?");
  bind_values(query, result.state, result.iteration_seconds.size(), result.median, result.low, result.high,
              result.error, result.trace_path, impl_->now(), result.iteration_seconds, result.messages,
              result.differences, id)
      .run();
  transaction.commit();
}

RowId Store::add_run(const NewRun& run, const RunResult& result) {
  Transaction transaction(impl_->db);
  const RowId id = start_run(run);
  finish_run(id, result);
  transaction.commit();
  return id;
}

std::optional<RunRow> Store::find_run(RowId id) const {
  Query query = impl_->db.query(kSelectRuns + " WHERE runs.id = ?");
  bind_values(query, id);
  return find_row(impl_->db, query, "run " + std::to_string(id), read_run);
}

PageOf<RunSummary> Store::runs(std::optional<RowId> plan, const Page& page) const {
  return list_rows(impl_->db, kSelectRunsSummary, {"runs.plan", plan}, {"runs.id"}, page, read_run_summary);
}

PageOf<RunSummary> Store::runs_on(RowId cluster, const Page& page) const {
  return list_rows(impl_->db, kSelectRunsSummary, {"runs.cluster", cluster}, {"runs.id"}, page,
                   read_run_summary);
}

}  // namespace commtune
