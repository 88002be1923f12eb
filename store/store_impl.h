#pragma once
// What the parts of Store share. Internal.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "perfmodel/base/error.h"
#include "store/database_connection.h"
#include "store/store.h"
#include "store/values.h"

namespace commtune {

struct Store::Impl {
  OpenOptions options;
  sql::DatabaseConnection db;
  std::map<std::string, Profile> profiles{};  ///< by digest: some that were read before

  Timestamp now() const { return options.clock(); }
  /// A stored profile, as far as its digest says what it is. Throws Error{kNotFound} when there is none.
  const Profile& known_profile(const Store& store, RowId id);
};

namespace sql {

/// Throws Error{kBadInput} unless `valid`: "plan.predicted = -1: must be at least 0".
inline void require(bool valid, const std::string& field, const std::string& value, const std::string& rule) {
  if (!valid) {
    throw Error(ErrorCode::kBadInput, field + " = " + value + ": " + rule);
  }
}

/// Throws Error{kBadInput} unless the time is finite and not negative.
inline void check_duration(const std::string& field, Seconds value) {
  require(std::isfinite(value.count()) && value.count() >= 0, field, std::to_string(value.count()),
          "must be a time of at least 0 s");
}

/// The same names and slots, in the same order.
inline bool same_hosts(const std::vector<Host>& a, const std::vector<Host>& b) {
  return std::ranges::equal(a, b, [](const Host& left, const Host& right) {
    return left.name == right.name && left.slots == right.slots;
  });
}

/// Throws Error{kNotFound} unless the table has the row: "session 12: there is none".
void require_row(DatabaseConnection& db, const std::string& table, const std::string& what, RowId id);

/// Runs `decode`, which reads a row; a value that cannot be understood becomes Error{kStorage} naming the
/// row.
template <class Decode>
auto decode_row(const DatabaseConnection& db, const std::string& what, const Decode& decode) {
  const auto damaged = [&](const std::string& why) {
    return Error(ErrorCode::kStorage, db.path().string() + ": " + what + " is damaged: " + why);
  };
  try {
    return decode();
  } catch (const nlohmann::json::exception& error) {
    throw damaged(error.what());
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kBadInput) {
      throw;
    }
    throw damaged(error.what());
  }
}

/// The row that a query finds, if any; `reader` makes it from the query.
template <class Reader>
auto find_row(const DatabaseConnection& db, Query& query, const std::string& what, const Reader& reader)
    -> std::optional<decltype(reader(query))> {
  if (!query.next()) {
    return std::nullopt;
  }
  return decode_row(db, what, [&] { return reader(query); });
}

enum class Direction { kNewestFirst, kOldestFirst };

/// Which rows a list has: all, or those where a column has a value.
struct Filter {
  std::string column;
  std::optional<RowId> value;
};

/// The ids that a list is ordered by, and which way.
struct ListOrder {
  std::string id;
  Direction direction = Direction::kNewestFirst;
};

/// One page of the rows that `select` (SELECT ... FROM ...) and the filter yield.
template <class Reader>
auto list_rows(DatabaseConnection& db, const std::string& select, const Filter& filter,
               const ListOrder& order, const Page& page, const Reader& reader) {
  require(page.limit >= 1 && page.limit <= 1000, "limit", std::to_string(page.limit), "must be 1 to 1000");
  require(page.after >= 0, "after", std::to_string(page.after), "must be an id, or 0");
  const bool newest_first = order.direction == Direction::kNewestFirst;
  const RowId after = newest_first && page.after == 0 ? std::numeric_limits<RowId>::max() : page.after;
  Query query = db.query(select + " WHERE " + (filter.value ? filter.column + " = ? AND " : "") + order.id +
                         (newest_first ? " < ?" : " > ?") + " ORDER BY " + order.id +
                         (newest_first ? " DESC" : "") + " LIMIT ?");
  if (filter.value) {
    bind_values(query, *filter.value);
  }
  bind_values(query, after, page.limit + 1);
  PageOf<decltype(reader(query))> result;
  while (query.next()) {
    if (result.rows.size() == static_cast<std::size_t>(page.limit)) {
      result.next = result.rows.back().id;
      break;
    }
    result.rows.push_back(decode_row(db, "a listed row", [&] { return reader(query); }));
  }
  return result;
}

}  // namespace sql
}  // namespace commtune
