#include "tests/store/every_row.h"

#include <chrono>
#include <cstddef>

#include "store/database_connection.h"
#include "store/jobs.h"
#include "store/store.h"
#include "store/stored_replies.h"
#include "store/tokens.h"

namespace commtune::tests {
namespace {

constexpr std::chrono::milliseconds kPatience{5000};

WallClock clock_from_noon() {
  return [now = timestamp_from_iso8601("2026-11-21T12:00:00.000Z")]() mutable {
    const Timestamp read = now;
    now += std::chrono::seconds(1);
    return read;
  };
}

std::vector<std::byte> bytes_of(std::string_view text) {
  std::vector<std::byte> bytes;
  for (const char c : text) bytes.push_back(static_cast<std::byte>(c));
  return bytes;
}

RowId add_token(Store& store) {
  Tokens tokens(store);
  const RowId reader = tokens.add({"reader",
                                   {"read"},
                                   bytes_of("salt"),
                                   bytes_of("hash"),
                                   timestamp_from_iso8601("2027-01-01T00:00:00Z")});
  tokens.revoke(reader);
  return tokens.add({"planner", {"read", "plan", "operate"}, bytes_of("pepper"), bytes_of("digest"), {}});
}

RowId measure(Store& store, const EveryRow& rows) {
  const RowId cluster = store.put_cluster(rows.cluster);
  store.see_facts(cluster, {{"kernel", "6.2"}});
  const RowId failed =
      store.start_session({.cluster = cluster, .settings = {{"a", 1}}, .owner = "alpha pid 1"});
  store.end_session(failed, WorkState::kFailed, "no route to host");
  store.resume_session(failed, "alpha pid 2");
  store.append_samples(failed, rows.samples);
  store.end_session(failed, WorkState::kComplete);
  const RowId fit = store.add_fit({failed, rows.cluster, {{"seed", 1}}});
  store.supplement_samples(failed, std::vector<NewSample>{rows.samples.back()});
  store.add_fit({failed, rows.cluster, nullptr});
  const RowId stopped = store.start_session({cluster, {}, Seconds{30}, false, ""});
  store.end_session(stopped, WorkState::kInterrupted);
  return fit;
}

void add_plans(Store& store, const EveryRow& rows, RowId fit, TokenId token) {
  const RowId profile = store.put_profile(rows.profile, token);
  for (const Plan& plan : rows.plans)
    store.add_plan(
        {plan, profile, fit, {{"chosen", true}}, Seconds{0.02}, Seconds{0.001}, Seconds{0.015}, token});
  store.add_plan({rows.plans.front(), profile, {}, nullptr, Seconds{0.02}, {}, {}, {}});
}

void add_runs(Store& store, const EveryRow& rows, TokenId token) {
  const NewRun run{1, 1, rows.cluster.hosts, {{"kernel", "6.1"}}, {{"iterations", 2}}, "", false, token};
  const RunResult result{WorkState::kComplete, {0.010, 0.011},     Seconds{0.0105},
                         Seconds{0.010},       Seconds{0.011},     "",
                         "trace.json",         {"host.alpha.cpu"}, rows.messages};
  store.add_run(run, result);
  const RowId failed = store.start_run({.plan = 2});
  store.finish_run(failed, {.state = WorkState::kFailed, .error = "rank 1 is lost"});
  const RowId stopped = store.start_run({.plan = 2, .owner = "alpha pid 3"});
  store.finish_run(stopped, {.state = WorkState::kInterrupted});
  store.start_run({.plan = 3});
}

void add_jobs(Store& store, TokenId token) {
  Jobs jobs(store);
  const RowId probe = jobs.enqueue({"probe", {{"cluster", "made-up"}}, 1, "planner", token, "key 1"});
  jobs.take_next("alpha pid 4");
  jobs.report(probe, 0.5, "links");
  jobs.append_log(probe, "half of it");
  jobs.finish(probe, JobState::kComplete, {{"fit", 1}});
  const RowId tune = jobs.enqueue({.kind = "tune", .request = {{"model", "made-up"}}});
  jobs.take_next("alpha pid 4");
  jobs.request_cancel(tune);
  jobs.finish(tune, JobState::kCancelled);
  for (const JobState end : {JobState::kFailed, JobState::kInterrupted}) {
    const RowId run = jobs.enqueue({.kind = "run"});
    jobs.take_next("alpha pid 4");
    jobs.finish(run, end, nullptr, "it ended");
  }
  jobs.enqueue({.kind = "run", .token = token});
}

void add_answers(Store& store, TokenId token) {
  StoredReplies answers(store);
  answers.claim({"planner /v1/plans 1", "0123", token}, {});
  answers.answer("planner /v1/plans 1", {201, "application/json", "{}"});
  answers.claim({"nobody /v1/plans 2", "4567", {}}, {});
}

}  // namespace

void make_every_row(const std::filesystem::path& path, const EveryRow& rows) {
  {
    Store store = Store::open(path, {.version = "0.1.0", .clock = clock_from_noon()});
    const TokenId token = add_token(store);
    const RowId fit = measure(store, rows);
    add_plans(store, rows, fit, token);
    add_runs(store, rows, token);
    add_jobs(store, token);
    add_answers(store, token);
  }
  sql::DatabaseConnection connection(std::filesystem::absolute(path),
                                     sql::DatabaseConnection::Mode::kReadWrite, kPatience);
  connection.text("PRAGMA journal_mode = DELETE");
  connection.execute("VACUUM");
}

std::string text_of_database(const std::filesystem::path& path) {
  sql::DatabaseConnection connection(std::filesystem::absolute(path),
                                     sql::DatabaseConnection::Mode::kReadOnly, kPatience);
  std::string text = "version " + std::to_string(connection.integer("PRAGMA user_version")) + "\n";
  std::vector<std::string> tables;
  sql::Query schema =
      connection.query("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type, name");
  while (schema.next()) {
    const std::string type = schema.column_text(), name = schema.column_text();
    text += schema.column_text() + "\n";
    if (type == "table") tables.push_back(name);
  }
  for (const std::string& table : tables) {
    std::string select;
    sql::Query names = connection.query("SELECT name FROM pragma_table_info('" + table + "')");
    while (names.next())
      select += (select.empty() ? "SELECT quote(" : " || ', ' || quote(") + names.column_text() + ")";
    select += " FROM \"" + table + "\" ORDER BY 1";
    sql::Query rows = connection.query(select);
    while (rows.next()) text += table + ": " + rows.column_text() + "\n";
  }
  return text;
}

}  // namespace commtune::tests
