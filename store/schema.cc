#include "store/schema.h"

#include <array>
#include <cassert>
#include <exception>
#include <string>

#include "store/values.h"

namespace commtune::sql {
namespace {

// Large columns come last in each table, so that lists do not read them.
constexpr std::string_view kVersion1 = R"sql(
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

// What a service keeps besides.
constexpr std::string_view kVersion2 = R"sql(
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

// What a run saw of each message.
constexpr std::string_view kVersion3 = R"sql(
ALTER TABLE runs ADD COLUMN messages TEXT;
)sql";

// Which process carries a run out.
constexpr std::string_view kVersion4 = R"sql(
ALTER TABLE runs ADD COLUMN owner TEXT NOT NULL DEFAULT '';
CREATE INDEX runs_running ON runs (id) WHERE state = 'running';
)sql";

// Whether a run was handed in with a token. Of those from before, the ones that say "loopback" were not.
constexpr std::string_view kVersion5 = R"sql(
ALTER TABLE runs ADD COLUMN attested INTEGER NOT NULL DEFAULT 1 CHECK (attested IN (0, 1));
UPDATE runs SET attested = 0
  WHERE CASE WHEN json_valid(settings) THEN json_extract(settings, '$.reported_by') END = 'loopback';
)sql";

// What each profile's tensors are, whatever its layers' times: layout_digest(). Apart from the profiles,
// whose rows have their largest column last.
constexpr std::string_view kVersion6 = R"sql(
CREATE TABLE layouts (
  profile_id INTEGER PRIMARY KEY REFERENCES profiles (id) ON DELETE CASCADE,
  layout     TEXT NOT NULL
) STRICT;
CREATE INDEX layouts_by_layout ON layouts (layout, profile_id);
)sql";

// What was last seen of a cluster, where its facts and fingerprint stay those that its fits were made with,
// and what a run found to differ from them.
constexpr std::string_view kVersion7 = R"sql(
ALTER TABLE clusters ADD COLUMN newest_facts TEXT;
ALTER TABLE runs ADD COLUMN differences TEXT NOT NULL DEFAULT '[]';
)sql";

// With which of the service's tokens a row was handed in (TokenId of store/rows.h; NULL: it came from no
// client of the service), and how many rows of a kind each has. Counted as rows come and go, because counting
// them for each request would take longer the more there are.
constexpr std::string_view kVersion8 = R"sql(
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

// The same for the answers that are kept under their idempotency keys. Those from before are nobody's, and
// forgotten within a day.
constexpr std::string_view kVersion9 = R"sql(
ALTER TABLE answers ADD COLUMN token INTEGER;
CREATE TRIGGER answers_kept AFTER INSERT ON answers WHEN new.token IS NOT NULL BEGIN
  INSERT INTO token_rows (token, kind, number) VALUES (new.token, 'answers', 1)
    ON CONFLICT (token, kind) DO UPDATE SET number = number + 1;
END;
CREATE TRIGGER answers_forgotten AFTER DELETE ON answers WHEN old.token IS NOT NULL BEGIN
  UPDATE token_rows SET number = number - 1 WHERE token = old.token AND kind = 'answers';
END;
)sql";

/// The layouts of the profiles that are there already. A profile that cannot be read any more has none: its
/// plans stay what they are, and nothing else is lost.
void fill_layouts(DatabaseConnection& connection) {
  Query profiles = connection.query("SELECT id, profile FROM profiles");
  while (profiles.next()) {
    RowId id = 0;
    Profile profile;
    try {
      read_values(profiles, id, profile);
    } catch (const std::exception&) {
      continue;
    }
    Query query = connection.query("INSERT INTO layouts (profile_id, layout) VALUES (?, ?)");
    bind_values(query, id, layout_digest(profile)).run();
  }
}

struct Step {
  std::string_view sql;
  void (*fill)(DatabaseConnection& connection) = nullptr;  ///< what is computed from the rows that are there
};

constexpr std::array<Step, 9> kSteps = {{{kVersion1},
                                         {kVersion2},
                                         {kVersion3},
                                         {kVersion4},
                                         {kVersion5},
                                         {kVersion6, fill_layouts},
                                         {kVersion7},
                                         {kVersion8},
                                         {kVersion9}}};

const Step& step(int from) {
  assert(from >= 0 && from < newest_schema());
  return kSteps[static_cast<std::size_t>(from)];
}

}  // namespace

int newest_schema() { return static_cast<int>(kSteps.size()); }

std::string_view schema_step(int from) { return step(from).sql; }

void migrate(DatabaseConnection& connection, int to) {
  Transaction transaction(connection);
  const int from = static_cast<int>(connection.integer("PRAGMA user_version"));
  for (int version = from; version < to; ++version) {
    connection.execute(std::string(step(version).sql));
    if (step(version).fill != nullptr) step(version).fill(connection);
  }
  if (from < to) {
    connection.execute("PRAGMA application_id = " + std::to_string(kApplicationId));
    connection.execute("PRAGMA user_version = " + std::to_string(to));
  }
  transaction.commit();
}

}  // namespace commtune::sql
