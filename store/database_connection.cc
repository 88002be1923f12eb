#include "store/database_connection.h"

#include <sqlite3.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <utility>

#include "perfmodel/base/error.h"

namespace commtune::sql {
namespace {

std::string seconds_text(std::chrono::milliseconds time) {
  const auto count = time.count();
  return count % 1000 == 0 ? std::to_string(count / 1000) + " s" : std::to_string(count) + " ms";
}

/// A path as a URI that SQLite opens, with a parameter behind it.
std::string uri_of(const std::filesystem::path& path, std::string_view parameter) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string uri = "file:";
  for (const char c : path.string()) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '/' || c == '.' || c == '-' || c == '_';
    if (plain) {
      uri += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      uri += '%';
      uri += kDigits[byte >> 4U];
      uri += kDigits[byte & 15U];
    }
  }
  return uri.append("?").append(parameter);
}

int open_flags(DatabaseConnection::Mode mode) {
  constexpr int kCommon = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  switch (mode) {
    case DatabaseConnection::Mode::kReadWrite:
      return kCommon | SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    case DatabaseConnection::Mode::kReadOnly:
      return kCommon | SQLITE_OPEN_READONLY;
    case DatabaseConnection::Mode::kImmutable:
      return kCommon | SQLITE_OPEN_READONLY | SQLITE_OPEN_URI;
  }
  return kCommon;
}

bool out_of_space(int system_error) { return system_error == ENOSPC || system_error == EDQUOT; }

}  // namespace

void CloseDatabase::operator()(sqlite3* database) const noexcept { sqlite3_close_v2(database); }
void FinalizeStatement::operator()(sqlite3_stmt* statement) const noexcept { sqlite3_finalize(statement); }

DatabaseConnection::DatabaseConnection(std::filesystem::path path, Mode mode,
                                       std::chrono::milliseconds busy_timeout)
    : path_(std::move(path)), busy_timeout_(busy_timeout) {
  const std::string name = mode == Mode::kImmutable ? uri_of(path_, "immutable=1") : path_.string();
  sqlite3* database = nullptr;
  const int code = sqlite3_open_v2(name.c_str(), &database, open_flags(mode), nullptr);
  database_.reset(database);
  if (code != SQLITE_OK) {
    fail(code);
  }
  sqlite3_busy_timeout(database, static_cast<int>(busy_timeout.count()));
}

void DatabaseConnection::execute(const std::string& sql) {
  const int code = sqlite3_exec(database_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) {
    fail(code);
  }
}

Statement DatabaseConnection::prepare(std::string_view sql) const {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v3(database_.get(), sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  if (code != SQLITE_OK) {
    fail(code);
  }
  return Statement(statement);
}

Query DatabaseConnection::query(std::string_view sql) {
  auto found = cache_.find(sql);
  if (found == cache_.end()) {
    found = cache_.emplace(std::string(sql), Cached{prepare(sql)}).first;
  }
  Cached& cached = found->second;
  if (cached.in_use) {
    Statement own = prepare(sql);
    sqlite3_stmt* statement = own.get();
    return {*this, statement, nullptr, std::move(own)};
  }
  return {*this, cached.statement.get(), &cached.in_use, nullptr};
}

std::int64_t DatabaseConnection::integer(std::string_view sql) {
  Query query(*this, nullptr, nullptr, prepare(sql));
  if (!query.next()) {
    fail(SQLITE_ERROR);
  }
  return query.column_integer();
}

std::string DatabaseConnection::text(std::string_view sql) {
  Query query(*this, nullptr, nullptr, prepare(sql));
  if (!query.next()) {
    fail(SQLITE_ERROR);
  }
  return query.column_text();
}

std::int64_t DatabaseConnection::last_row_id() const { return sqlite3_last_insert_rowid(database_.get()); }
std::int64_t DatabaseConnection::changes() const { return sqlite3_changes64(database_.get()); }
bool DatabaseConnection::in_transaction() const { return sqlite3_get_autocommit(database_.get()) == 0; }
bool DatabaseConnection::read_only() const { return sqlite3_db_readonly(database_.get(), "main") == 1; }
std::size_t DatabaseConnection::page_size() { return static_cast<std::size_t>(integer("PRAGMA page_size")); }

void DatabaseConnection::fail(int code) const {
  const std::string where = path_.string() + ": ";
  const int system_error = database_ == nullptr ? 0 : sqlite3_system_errno(database_.get());
  const std::string reason = database_ == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(database_.get());
  const std::string system_reason =
      system_error == 0 ? "" : std::string(" (") + std::strerror(system_error) + ")";
  const int primary = code & 0xff;
  if (primary == SQLITE_FULL || (primary == SQLITE_IOERR && out_of_space(system_error))) {
    throw Error(ErrorCode::kStorage,
                where + "the disk is full: this was not stored; everything stored before it is intact");
  }
  switch (primary) {
    case SQLITE_NOTADB:
      throw Error(ErrorCode::kStorage, where + "this is not a database");
    case SQLITE_CORRUPT:
      throw Error(ErrorCode::kStorage,
                  where + "the database is damaged (" + reason + "): nothing was changed; restore a backup");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      throw Error(ErrorCode::kConflict, where + "another process has kept it locked for longer than " +
                                            seconds_text(busy_timeout_) + "; try again");
    case SQLITE_READONLY:
    case SQLITE_PERM:
      throw Error(ErrorCode::kStorage, where + "read-only: nothing can be stored here");
    case SQLITE_CANTOPEN:
      throw Error(ErrorCode::kStorage, where + "cannot be opened" + system_reason);
    case SQLITE_IOERR:
      throw Error(ErrorCode::kStorage, where + "cannot be read or written: " + reason + system_reason);
    case SQLITE_CONSTRAINT:
      throw Error(code == SQLITE_CONSTRAINT_FOREIGNKEY ? ErrorCode::kNotFound : ErrorCode::kBadInput,
                  where + "refused to store a row: " + reason);
    default:
      throw Error(ErrorCode::kStorage, where + reason + system_reason);
  }
}

// ---- Query ----

Query::Query(DatabaseConnection& connection, sqlite3_stmt* statement, bool* in_use, Statement owned)
    : connection_(connection),
      statement_(owned == nullptr ? statement : owned.get()),
      in_use_(in_use),
      owned_(std::move(owned)) {
  if (in_use_ != nullptr) {
    *in_use_ = true;
  }
}

Query::~Query() {
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
  if (in_use_ != nullptr) {
    *in_use_ = false;
  }
}

void Query::check(int code) {
  if (code != SQLITE_OK) {
    connection_.fail(code);
  }
}

void Query::bind_null() { check(sqlite3_bind_null(statement_, ++parameter_)); }

void Query::bind_integer(std::int64_t value) { check(sqlite3_bind_int64(statement_, ++parameter_, value)); }

void Query::bind_real(double value) {
  if (std::isnan(value)) {
    throw Error(ErrorCode::kBadInput, "cannot store a value that is not a number (NaN)");
  }
  check(sqlite3_bind_double(statement_, ++parameter_, value));
}

void Query::bind_text(std::string_view value) {
  const char* data = value.data() == nullptr ? "" : value.data();
  check(sqlite3_bind_text64(statement_, ++parameter_, data, value.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
}

void Query::bind_blob(std::span<const std::byte> value) {
  const void* data = value.empty() ? static_cast<const void*>("") : value.data();
  check(sqlite3_bind_blob64(statement_, ++parameter_, data, value.size(), SQLITE_TRANSIENT));
}

bool Query::next() {
  column_ = 0;
  const int code = sqlite3_step(statement_);
  if (code != SQLITE_ROW && code != SQLITE_DONE) {
    connection_.fail(code);
  }
  return code == SQLITE_ROW;
}

void Query::run() {
  while (next()) {
  }
}

bool Query::column_is_null() const { return sqlite3_column_type(statement_, column_) == SQLITE_NULL; }

std::int64_t Query::column_integer() { return sqlite3_column_int64(statement_, column_++); }

double Query::column_real() { return sqlite3_column_double(statement_, column_++); }

std::string Query::column_text() {
  const int column = column_++;
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_, column));
  return text == nullptr ? std::string() : std::string(text, size);
}

std::span<const std::byte> Query::column_blob() {
  const int column = column_++;
  const auto* data = static_cast<const std::byte*>(sqlite3_column_blob(statement_, column));
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_, column));
  return {data, data == nullptr ? 0 : size};
}

// ---- Transaction ----

Transaction::Transaction(DatabaseConnection& connection)
    : connection_(connection), nested_(connection.transactions_ > 0) {
  if (nested_) {
    require_open();
  }
  connection_.execute(nested_ ? "SAVEPOINT part" : "BEGIN IMMEDIATE");
  ++connection_.transactions_;
}

Transaction::~Transaction() {
  --connection_.transactions_;
  if (!open_ || !connection_.in_transaction()) {
    return;
  }
  const char* undo = nested_ ? "ROLLBACK TO part; RELEASE part" : "ROLLBACK";
  sqlite3_exec(connection_.handle(), undo, nullptr, nullptr, nullptr);
}

void Transaction::commit() {
  require_open();
  connection_.execute(nested_ ? "RELEASE part" : "COMMIT");
  open_ = false;
}

void Transaction::require_open() const {
  if (!connection_.in_transaction()) {
    throw Error(ErrorCode::kStorage,
                connection_.path().string() + ": the transaction was undone after an earlier failure in it");
  }
}

}  // namespace commtune::sql
