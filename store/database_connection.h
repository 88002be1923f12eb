#pragma once
// A thin layer over SQLite: owners for its handles, statements prepared once, failures as Error. Internal to
// store/; SQLite's own header stays in the .cc.
//
// Why not a library: what we add to SQLite is mostly its error handling (extended codes and the system's
// errno turned into one sentence) and a cache of statements that reset themselves. SQLiteCpp, the best kept
// wrapper, leaves both to its caller, so each of its calls would be wrapped again.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace commtune::sql {

struct CloseDatabase {
  void operator()(sqlite3* database) const noexcept;
};
struct FinalizeStatement {
  void operator()(sqlite3_stmt* statement) const noexcept;
};
using Database = std::unique_ptr<sqlite3, CloseDatabase>;
using Statement = std::unique_ptr<sqlite3_stmt, FinalizeStatement>;

class Query;

/// One connection, for one thread at a time. Must outlive its queries and transactions.
class DatabaseConnection {
 public:
  enum class Mode {
    kReadWrite,  ///< creates the file when absent
    kReadOnly,
    kImmutable,  ///< read-only, without locks: for a file that nobody can write now
  };

  /// path  absolute, or ":memory:". Opening reads nothing yet. Throws Error{kStorage}.
  DatabaseConnection(std::filesystem::path path, Mode mode, std::chrono::milliseconds busy_timeout);

  /// Runs SQL without parameters; rows are dropped.
  void execute(const std::string& sql);

  /// The statement, prepared at its first use and kept. At most one Query of a text is under way at a time;
  /// a further one gets a statement of its own.
  Query query(std::string_view sql);

  /// The first column of the first row. Throws Error{kStorage} if there is none.
  std::int64_t integer(std::string_view sql);
  std::string text(std::string_view sql);

  std::int64_t last_row_id() const;
  std::int64_t changes() const;  ///< rows changed by the last statement
  bool in_transaction() const;
  bool read_only() const;
  std::size_t page_size();

  const std::filesystem::path& path() const { return path_; }
  std::chrono::milliseconds busy_timeout() const { return busy_timeout_; }
  sqlite3* handle() const { return database_.get(); }

  /// Throws the Error for a result code of SQLite that came back from this connection.
  [[noreturn]] void fail(int code) const;

 private:
  friend class Query;
  friend class Transaction;
  struct Cached {
    Statement statement;
    bool in_use = false;
  };
  Statement prepare(std::string_view sql) const;

  std::filesystem::path path_;
  std::chrono::milliseconds busy_timeout_;
  Database database_;
  std::map<std::string, Cached, std::less<>> cache_;  // after database_: statements go first
  int transactions_ = 0;                              // open ones, nested
};

/// A statement with its parameters and the row that it stands on. Reset when it goes out of scope.
class Query {
 public:
  Query(DatabaseConnection& connection, sqlite3_stmt* statement, bool* in_use, Statement owned);
  ~Query();
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

  /// Parameters, in order. Texts and blobs are copied.
  void bind_null();
  void bind_integer(std::int64_t value);
  void bind_real(double value);  ///< Throws Error{kBadInput} for what SQL cannot hold: NaN
  void bind_text(std::string_view value);
  void bind_blob(std::span<const std::byte> value);

  /// Goes to the next row; false when there is none.
  bool next();
  /// Runs a statement that yields no rows.
  void run();

  /// Columns of the current row, in order.
  bool column_is_null() const;  ///< of the next one to be read
  void skip_column() { ++column_; }
  std::int64_t column_integer();
  double column_real();
  std::string column_text();
  std::span<const std::byte> column_blob();  ///< valid until next()

 private:
  void check(int code);

  DatabaseConnection& connection_;
  sqlite3_stmt* statement_;
  bool* in_use_;  ///< the cache's mark; null when the statement is owned
  Statement owned_;
  int parameter_ = 0;
  int column_ = 0;
};

/// All or nothing. The outermost takes the write lock at once (BEGIN IMMEDIATE), so that it cannot fail for a
/// lock half way; an inner one is a savepoint. Undone when it goes out of scope without commit(). When SQLite
/// undid the outermost by itself (disk full), what would go on inside it throws Error{kStorage}.
class Transaction {
 public:
  explicit Transaction(DatabaseConnection& connection);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  void commit();

 private:
  void require_open() const;

  DatabaseConnection& connection_;
  bool nested_;
  bool open_ = true;
};

}  // namespace commtune::sql
