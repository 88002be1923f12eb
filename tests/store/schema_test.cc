// Bringing files of every earlier version up to date.

#include "store/schema.h"

#include <array>
#include <fstream>

#include "store/database_connection.h"
#include "store/quotas.h"
#include "tests/store/support.h"

namespace commtune {
namespace {

using tests::TempFolder;
using namespace std::chrono_literals;

/// The tables of version 1 as they were released, apart from the sources, so that an edit of a released step
/// shows.
constexpr const char* kVersion1 = R"sql(
CREATE TABLE clusters (
  id          INTEGER PRIMARY KEY AUTOINCREMENT,
  name        TEXT NOT NULL CHECK (name <> ''),
  transport   TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  seen_order  INTEGER NOT NULL UNIQUE,
  seen        TEXT NOT NULL,
  created     TEXT NOT NULL,
  version     TEXT NOT NULL,
  hosts       TEXT NOT NULL,
  facts       TEXT NOT NULL,
  UNIQUE (name, fingerprint, transport, hosts)
) STRICT;

CREATE TABLE sessions (
  id             INTEGER PRIMARY KEY AUTOINCREMENT,
  cluster        INTEGER NOT NULL REFERENCES clusters (id),
  state          TEXT NOT NULL CHECK (state IN ('running', 'complete', 'interrupted', 'failed')),
  resumable      INTEGER NOT NULL CHECK (resumable IN (0, 1)),
  resumed        INTEGER NOT NULL DEFAULT 0,
  budget_seconds REAL NOT NULL,
  owner          TEXT NOT NULL,
  created        TEXT NOT NULL,
  ended          TEXT CHECK ((ended IS NULL) = (state = 'running')),
  version        TEXT NOT NULL,
  error          TEXT NOT NULL DEFAULT '',
  settings       TEXT
) STRICT;
CREATE INDEX sessions_by_cluster ON sessions (cluster, id);
CREATE UNIQUE INDEX sessions_one_running ON sessions (cluster) WHERE state = 'running';

CREATE TABLE samples (
  id                 INTEGER PRIMARY KEY AUTOINCREMENT,
  session            INTEGER NOT NULL REFERENCES sessions (id),
  kind               TEXT NOT NULL CHECK (kind <> ''),
  operation          TEXT,
  road               TEXT,
  workers            INTEGER NOT NULL,
  servers            INTEGER NOT NULL,
  source_rank        INTEGER,
  destination_rank   INTEGER,
  in_flight          INTEGER NOT NULL CHECK (in_flight >= 1),
  size_bytes         INTEGER NOT NULL CHECK (size_bytes >= 0),
  median_seconds     REAL NOT NULL CHECK (median_seconds >= 0),
  half_width_seconds REAL NOT NULL CHECK (half_width_seconds >= 0),
  repetitions        INTEGER NOT NULL CHECK (repetitions >= 1),
  at                 TEXT NOT NULL,
  detail             TEXT,
  raw_seconds        BLOB NOT NULL
) STRICT;
CREATE INDEX samples_by_session ON samples (session, id);

CREATE TABLE fits (
  id       INTEGER PRIMARY KEY AUTOINCREMENT,
  session  INTEGER NOT NULL REFERENCES sessions (id),
  cluster  INTEGER NOT NULL REFERENCES clusters (id),
  created  TEXT NOT NULL,
  version  TEXT NOT NULL,
  settings TEXT,
  snapshot TEXT NOT NULL
) STRICT;
CREATE INDEX fits_by_cluster ON fits (cluster, id);
CREATE INDEX fits_by_session ON fits (session);

CREATE TABLE fit_curves (
  id              INTEGER PRIMARY KEY AUTOINCREMENT,
  fit             INTEGER NOT NULL REFERENCES fits (id) ON DELETE CASCADE,
  session         INTEGER NOT NULL REFERENCES sessions (id),
  subject         TEXT NOT NULL,
  setting         TEXT NOT NULL,
  road            TEXT,
  workers         INTEGER NOT NULL,
  pieces          INTEGER NOT NULL,
  samples         INTEGER NOT NULL,
  r_squared       REAL NOT NULL,
  median_relative REAL NOT NULL,
  p90_relative    REAL NOT NULL,
  smallest_bytes  INTEGER NOT NULL,
  largest_bytes   INTEGER NOT NULL
) STRICT;
CREATE INDEX fit_curves_by_fit ON fit_curves (fit, id);
CREATE INDEX fit_curves_by_session ON fit_curves (session);

CREATE TABLE profiles (
  id              INTEGER PRIMARY KEY AUTOINCREMENT,
  digest          TEXT NOT NULL,
  model           TEXT NOT NULL,
  batch           INTEGER NOT NULL,
  layers          INTEGER NOT NULL,
  tensors         INTEGER NOT NULL,
  gradient_bytes  INTEGER NOT NULL,
  compute_seconds REAL NOT NULL,
  how             TEXT NOT NULL,
  created         TEXT NOT NULL,
  version         TEXT NOT NULL,
  profile         TEXT NOT NULL,
  UNIQUE (digest, model)
) STRICT;

CREATE TABLE plans (
  id                 INTEGER PRIMARY KEY AUTOINCREMENT,
  digest             TEXT NOT NULL,
  method             TEXT NOT NULL,
  model              TEXT NOT NULL,
  road               TEXT NOT NULL,
  workers            INTEGER NOT NULL,
  messages           INTEGER NOT NULL,
  profile            INTEGER NOT NULL REFERENCES profiles (id),
  fit                INTEGER REFERENCES fits (id),
  cluster            INTEGER REFERENCES clusters (id),
  predicted_seconds  REAL NOT NULL,
  half_width_seconds REAL NOT NULL,
  bound_seconds      REAL NOT NULL,
  created            TEXT NOT NULL,
  version            TEXT NOT NULL,
  plan               TEXT NOT NULL,
  ranking            TEXT
) STRICT;
CREATE INDEX plans_by_digest ON plans (digest, id);
CREATE INDEX plans_by_cluster ON plans (cluster, id);
CREATE INDEX plans_by_profile ON plans (profile);
CREATE INDEX plans_by_fit ON plans (fit);

CREATE TABLE runs (
  id                INTEGER PRIMARY KEY AUTOINCREMENT,
  plan              INTEGER NOT NULL REFERENCES plans (id),
  cluster           INTEGER REFERENCES clusters (id),
  state             TEXT NOT NULL CHECK (state IN ('running', 'complete', 'interrupted', 'failed')),
  iterations        INTEGER NOT NULL DEFAULT 0,
  median_seconds    REAL NOT NULL DEFAULT 0,
  low_seconds       REAL NOT NULL DEFAULT 0,
  high_seconds      REAL NOT NULL DEFAULT 0,
  error             TEXT NOT NULL DEFAULT '',
  trace_path        TEXT NOT NULL DEFAULT '',
  created           TEXT NOT NULL,
  ended             TEXT CHECK ((ended IS NULL) = (state = 'running')),
  version           TEXT NOT NULL,
  hosts             TEXT NOT NULL,
  versions          TEXT NOT NULL,
  settings          TEXT,
  iteration_seconds BLOB NOT NULL DEFAULT x''
) STRICT;
CREATE INDEX runs_by_plan ON runs (plan, id);
CREATE INDEX runs_by_cluster ON runs (cluster, id);
)sql";

/// What version 2 added, likewise.
constexpr const char* kVersion2 = R"sql(
CREATE TABLE jobs (
  id               INTEGER PRIMARY KEY AUTOINCREMENT,
  kind             TEXT NOT NULL CHECK (kind <> ''),
  cluster          INTEGER REFERENCES clusters (id),
  state            TEXT NOT NULL
    CHECK (state IN ('queued', 'running', 'complete', 'failed', 'cancelled', 'interrupted')),
  requested_by     TEXT NOT NULL,
  idempotency_key  TEXT NOT NULL,
  owner            TEXT NOT NULL DEFAULT '',
  attempts         INTEGER NOT NULL DEFAULT 0,
  progress         REAL NOT NULL DEFAULT 0 CHECK (progress BETWEEN 0 AND 1),
  stage            TEXT NOT NULL DEFAULT '',
  cancel_requested INTEGER NOT NULL DEFAULT 0 CHECK (cancel_requested IN (0, 1)),
  error            TEXT NOT NULL DEFAULT '',
  created          TEXT NOT NULL,
  started          TEXT,
  ended            TEXT,
  version          TEXT NOT NULL,
  request          TEXT,
  result           TEXT
) STRICT;
CREATE UNIQUE INDEX jobs_by_key ON jobs (idempotency_key) WHERE idempotency_key <> '';
CREATE UNIQUE INDEX jobs_one_running ON jobs (cluster) WHERE state = 'running';
CREATE INDEX jobs_queued ON jobs (id) WHERE state = 'queued';
CREATE INDEX jobs_by_cluster ON jobs (cluster, id);

CREATE TABLE job_log (
  id   INTEGER PRIMARY KEY AUTOINCREMENT,
  job  INTEGER NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
  at   TEXT NOT NULL,
  line TEXT NOT NULL
) STRICT;
CREATE INDEX job_log_by_job ON job_log (job, id);

CREATE TABLE tokens (
  id      INTEGER PRIMARY KEY AUTOINCREMENT,
  name    TEXT NOT NULL CHECK (name <> ''),
  scopes  TEXT NOT NULL,
  salt    BLOB NOT NULL CHECK (length(salt) > 0),
  hash    BLOB NOT NULL CHECK (length(hash) > 0),
  created TEXT NOT NULL,
  expires TEXT,
  revoked TEXT,
  version TEXT NOT NULL
) STRICT;

CREATE TABLE answers (
  key            TEXT PRIMARY KEY CHECK (key <> ''),
  request_digest TEXT NOT NULL,
  claimed        TEXT NOT NULL,
  status         INTEGER,
  content_type   TEXT,
  body           TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX answers_by_age ON answers (claimed);
)sql";

/// What version 3 added.
constexpr const char* kVersion3 = R"sql(
ALTER TABLE runs ADD COLUMN messages TEXT;
)sql";

/// What version 4 added.
constexpr const char* kVersion4 = R"sql(
ALTER TABLE runs ADD COLUMN owner TEXT NOT NULL DEFAULT '';
CREATE INDEX runs_running ON runs (id) WHERE state = 'running';
)sql";

/// What version 5 added.
constexpr const char* kVersion5 = R"sql(
ALTER TABLE runs ADD COLUMN attested INTEGER NOT NULL DEFAULT 1 CHECK (attested IN (0, 1));
UPDATE runs SET attested = 0
  WHERE CASE WHEN json_valid(settings) THEN json_extract(settings, '$.reported_by') END = 'loopback';
)sql";

/// What version 6 added.
constexpr const char* kVersion6 = R"sql(
CREATE TABLE layouts (
  profile_id INTEGER PRIMARY KEY REFERENCES profiles (id) ON DELETE CASCADE,
  layout     TEXT NOT NULL
) STRICT;
CREATE INDEX layouts_by_layout ON layouts (layout, profile_id);
)sql";

/// What version 7 added.
constexpr const char* kVersion7 = R"sql(
ALTER TABLE clusters ADD COLUMN newest_facts TEXT;
ALTER TABLE runs ADD COLUMN differences TEXT NOT NULL DEFAULT '[]';
)sql";

/// What version 8 added.
constexpr const char* kVersion8 = R"sql(
ALTER TABLE profiles ADD COLUMN token INTEGER;
ALTER TABLE plans ADD COLUMN token INTEGER;
ALTER TABLE runs ADD COLUMN token INTEGER;
ALTER TABLE jobs ADD COLUMN token INTEGER;
CREATE INDEX jobs_waiting ON jobs (token) WHERE state = 'queued';

CREATE TABLE token_rows (
  token  INTEGER NOT NULL,
  kind   TEXT NOT NULL,
  number INTEGER NOT NULL CHECK (number >= 0),
  PRIMARY KEY (token, kind)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER profiles_stored AFTER INSERT ON profiles WHEN new.token IS NOT NULL BEGIN
  INSERT INTO token_rows (token, kind, number) VALUES (new.token, 'profiles', 1)
    ON CONFLICT (token, kind) DO UPDATE SET number = number + 1;
END;
CREATE TRIGGER profiles_deleted AFTER DELETE ON profiles WHEN old.token IS NOT NULL BEGIN
  UPDATE token_rows SET number = number - 1 WHERE token = old.token AND kind = 'profiles';
END;
CREATE TRIGGER plans_stored AFTER INSERT ON plans WHEN new.token IS NOT NULL BEGIN
  INSERT INTO token_rows (token, kind, number) VALUES (new.token, 'plans', 1)
    ON CONFLICT (token, kind) DO UPDATE SET number = number + 1;
END;
CREATE TRIGGER plans_deleted AFTER DELETE ON plans WHEN old.token IS NOT NULL BEGIN
  UPDATE token_rows SET number = number - 1 WHERE token = old.token AND kind = 'plans';
END;
CREATE TRIGGER runs_stored AFTER INSERT ON runs WHEN new.token IS NOT NULL BEGIN
  INSERT INTO token_rows (token, kind, number) VALUES (new.token, 'runs', 1)
    ON CONFLICT (token, kind) DO UPDATE SET number = number + 1;
END;
CREATE TRIGGER runs_deleted AFTER DELETE ON runs WHEN old.token IS NOT NULL BEGIN
  UPDATE token_rows SET number = number - 1 WHERE token = old.token AND kind = 'runs';
END;
)sql";

/// What version 1 kept of a probe, a plan and a run.
constexpr const char* kVersion1Content = R"sql(
INSERT INTO clusters (name, transport, fingerprint, seen_order, seen, created, version, hosts, facts) VALUES
  ('lab', 'mpi', '0123456789abcdef', 1, '2026-11-21T12:00:00.000Z', '2026-11-21T12:00:00.000Z', '0.1.0',
   '[{"name":"alpha","slots":2}]', '{"mtu":"1500"}');
INSERT INTO sessions (cluster, state, resumable, budget_seconds, owner, created, version, settings) VALUES
  (1, 'running', 1, 8.0, 'alpha pid 7', '2026-11-21T12:00:01.000Z', '0.1.0', '{"sizes":[4,8]}');
INSERT INTO samples (session, kind, operation, road, workers, servers, source_rank, destination_rank, in_flight,
                     size_bytes, median_seconds, half_width_seconds, repetitions, at, detail, raw_seconds) VALUES
  (1, 'operation', 'all-reduce', '{"kind":"all-to-all","algorithm":"ring"}', 2, 0, NULL, NULL, 1, 4096, 0.5, 0.0,
   1, '2026-11-21T12:00:02.000Z', NULL, x'000000000000e03f');
INSERT INTO profiles (digest, model, batch, layers, tensors, gradient_bytes, compute_seconds, how, created,
                      version, profile) VALUES
  ('d1', 'small', 8, 1, 1, 4096, 0.1, 'measured', '2026-11-21T12:00:03.000Z', '0.1.0', '{}');
INSERT INTO plans (digest, method, model, road, workers, messages, profile, predicted_seconds,
                   half_width_seconds, bound_seconds, created, version, plan) VALUES
  ('d2', 'joint', 'small', 'all-to-all ring', 2, 1, 1, 0.2, 0.0, 0.1, '2026-11-21T12:00:04.000Z', '0.1.0', '{}');
INSERT INTO runs (plan, cluster, state, iterations, median_seconds, low_seconds, high_seconds, created, ended,
                  version, hosts, versions, iteration_seconds) VALUES
  (1, 1, 'complete', 1, 0.25, 0.25, 0.25, '2026-11-21T12:00:05.000Z', '2026-11-21T12:00:06.000Z', '0.1.0', '[]',
   '{}', x'000000000000d03f');
INSERT INTO runs (plan, cluster, state, iterations, median_seconds, low_seconds, high_seconds, created, ended,
                  version, hosts, versions, settings, iteration_seconds) VALUES
  (1, 1, 'complete', 1, 9, 9, 9, '2026-11-21T12:00:07.000Z', '2026-11-21T12:00:08.000Z', '0.1.0', '[]', '{}',
   '{"reported_by":"loopback"}', x'0000000000002240'),
  (1, 1, 'complete', 1, 0.25, 0.25, 0.25, '2026-11-21T12:00:09.000Z', '2026-11-21T12:00:10.000Z', '0.1.0', '[]', '{}',
   '{"reported_by":"slurm"}', x'000000000000d03f');
)sql";

/// The steps to each version before the newest one, oldest first.
constexpr std::array kEarlierSteps = {kVersion1, kVersion2, kVersion3, kVersion4,
                                      kVersion5, kVersion6, kVersion7, kVersion8};

void make_file(const std::filesystem::path& path, int version) {
  sql::DatabaseConnection db(path, sql::DatabaseConnection::Mode::kReadWrite, 1s);
  db.execute(kEarlierSteps[0]);
  db.execute(kVersion1Content);
  for (int step = 1; step < version; ++step) db.execute(kEarlierSteps.at(static_cast<std::size_t>(step)));
  db.execute("PRAGMA application_id = " + std::to_string(sql::kApplicationId));
  db.execute("PRAGMA user_version = " + std::to_string(version));
}

/// Every table and index with its columns, as SQLite sees them, whatever the layout of the text.
std::string shape(const std::filesystem::path& path) {
  sql::DatabaseConnection db(path, sql::DatabaseConnection::Mode::kReadOnly, 1s);
  sql::Query query = db.query(
      "SELECT s.type || ' ' || s.name || ' ' || coalesce((SELECT group_concat(c.name || ' ' || c.type || ' ' "
      "|| "
      "c.\"notnull\" || ' ' || c.pk || ' ' || coalesce(c.dflt_value, ''), ', ') FROM "
      "pragma_table_info(s.name) AS "
      "c), '') || coalesce((SELECT group_concat(i.name) FROM pragma_index_info(s.name) AS i), '') "
      "FROM sqlite_schema AS s ORDER BY 1");
  std::string text;
  while (query.next()) {
    text += query.column_text() + "\n";
  }
  return text;
}

TEST(Schema, ThereIsAFileOfEveryEarlierVersionToTestWith) {
  EXPECT_EQ(static_cast<int>(kEarlierSteps.size()), Store::schema_version() - 1);
}

TEST(Schema, AReleasedStepIsNotEdited) {
  for (int step = 0; step < static_cast<int>(kEarlierSteps.size()); ++step)
    EXPECT_EQ(sql::schema_step(step), kEarlierSteps.at(static_cast<std::size_t>(step)));
}

class Migration : public ::testing::TestWithParam<int> {
 protected:
  Migration() { make_file(path_, GetParam()); }
  TempFolder folder_;
  std::filesystem::path path_ = folder_ / "store.db";
};

TEST_P(Migration, KeepsEverything) {
  Store store = Store::open(path_);
  const auto cluster = store.find_cluster("lab");
  ASSERT_TRUE(cluster);
  EXPECT_EQ(cluster->hosts.at(0).name, "alpha");
  EXPECT_EQ(cluster->origin.created, tests::noon());
  const auto session = store.running_session(cluster->id);
  ASSERT_TRUE(session);
  EXPECT_EQ(session->budget, Seconds{8});
  const auto samples = store.all_samples(session->id);
  ASSERT_EQ(samples.size(), 1U);
  EXPECT_EQ(samples[0].road, Road(AllReduce{}));
  EXPECT_EQ(samples[0].raw_seconds, std::vector<double>{0.5});
  const auto runs = store.runs();
  ASSERT_EQ(runs.rows.size(), 3U);
  EXPECT_EQ(runs.rows[0].predicted, Seconds{0.2});
  EXPECT_EQ(store.find_run(1)->iteration_seconds, std::vector<double>{0.25});
  EXPECT_TRUE(store.examine().empty());
}

TEST_P(Migration, KnowsWhichRunsWereHandedInWithoutAToken) {
  Store store = Store::open(path_);
  EXPECT_TRUE(store.find_run(1)->attested);   // measured by `tune run`
  EXPECT_FALSE(store.find_run(2)->attested);  // reported by "loopback": nobody was asked for a token
  EXPECT_TRUE(store.find_run(3)->attested);   // reported by the token "slurm"
}

TEST_P(Migration, CountsWhatWasThereForNobody) {
  Store store = Store::open(path_);
  const Quotas quotas(store);
  for (const Held held : {Held::kProfiles, Held::kPlans, Held::kRuns, Held::kWaitingJobs})
    EXPECT_EQ(quotas.count(held, kNoToken), 0) << to_string(held);
}

TEST_P(Migration, LeadsToTheSameTablesAsANewFile) {
  Store::open(path_);
  Store::open(folder_ / "new.db");
  EXPECT_EQ(shape(path_), shape(folder_ / "new.db"));
}

TEST_P(Migration, IsNotDoneByWhoOnlyReads) {
  EXPECT_THAT(tests::error_of([&] { Store::open(path_, {.access = Access::kReadOnly}); }),
              tests::IsError(ErrorCode::kStorage, "the store has version " + std::to_string(GetParam()) +
                                                      "; open it once for writing"));
}

TEST_P(Migration, ThatFailsLeavesTheFileAsItWas) {
  {
    sql::DatabaseConnection db(path_, sql::DatabaseConnection::Mode::kReadWrite, 1s);
    // What a later step would add, which fails there.
    const bool has_runs_of_tokens = GetParam() >= 8;
    db.execute(has_runs_of_tokens ? "ALTER TABLE answers ADD COLUMN token INTEGER"
                                  : "ALTER TABLE runs ADD COLUMN token INTEGER");
  }
  const std::string before = shape(path_);
  EXPECT_THROW(Store::open(path_), Error);
  EXPECT_EQ(shape(path_), before);
  sql::DatabaseConnection db(path_, sql::DatabaseConnection::Mode::kReadOnly, 1s);
  EXPECT_EQ(db.integer("PRAGMA user_version"), GetParam());
}

INSTANTIATE_TEST_SUITE_P(FromVersion, Migration, ::testing::Range(1, Store::schema_version()));

}  // namespace
}  // namespace commtune
