#pragma once
// Our types as parameters and columns: the one place that says how each is written in the file. Internal.
//
//   Seconds               REAL, seconds                    Timestamp   TEXT, ISO 8601
//   Bytes                 INTEGER, at most 2^63 - 1        bool        INTEGER, 0 or 1
//   JSON, roads, hosts    TEXT                             enumerators TEXT, as to_string writes them
//   std::vector<double>   BLOB, IEEE 754, little-endian    an absent optional, a null JSON: NULL
//   lists of texts        TEXT, JSON

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/database_connection.h"
#include "store/jobs.h"
#include "store/json_text.h"
#include "store/rows.h"

namespace commtune::sql {

template <std::integral T>
void put(Query& query, T value) {
  query.bind_integer(static_cast<std::int64_t>(value));
}
inline void put(Query& query, double value) { query.bind_real(value); }
inline void put(Query& query, std::string_view value) { query.bind_text(value); }
inline void put(Query& query, const std::string& value) { query.bind_text(value); }
inline void put(Query& query, const char* value) { query.bind_text(value); }
inline void put(Query& query, Seconds value) { query.bind_real(value.count()); }
inline void put(Query& query, Timestamp value) { query.bind_text(to_iso8601(value)); }
void put(Query& query, Bytes value);  ///< Throws Error{kBadInput} for 2^63 bytes and more
void put(Query& query, const nlohmann::json& value);
void put(Query& query, const Road& value);
void put(Query& query, Operation value);
void put(Query& query, WorkState value);
void put(Query& query, const std::vector<Host>& value);
void put(Query& query, const std::map<std::string, std::string>& value);
void put(Query& query, const std::vector<double>& value);
void put(Query& query, const std::vector<std::string>& value);
void put(Query& query, const std::vector<std::byte>& value);
void put(Query& query, JobState value);

template <class T>
void put(Query& query, const std::optional<T>& value) {
  if (value) {
    put(query, *value);
  } else {
    query.bind_null();
  }
}

template <std::integral T>
void get(Query& query, T& value) {
  value = static_cast<T>(query.column_integer());
}
inline void get(Query& query, double& value) { value = query.column_real(); }
inline void get(Query& query, std::string& value) { value = query.column_text(); }
inline void get(Query& query, Seconds& value) { value = Seconds{query.column_real()}; }
inline void get(Query& query, Timestamp& value) { value = timestamp_from_iso8601(query.column_text()); }
inline void get(Query& query, Bytes& value) {
  value = Bytes{static_cast<std::uint64_t>(query.column_integer())};
}
void get(Query& query, nlohmann::json& value);
void get(Query& query, Road& value);
void get(Query& query, Operation& value);
void get(Query& query, WorkState& value);
void get(Query& query, std::vector<Host>& value);
void get(Query& query, std::map<std::string, std::string>& value);
void get(Query& query, std::vector<double>& value);
void get(Query& query, std::vector<std::string>& value);
void get(Query& query, std::vector<std::byte>& value);
void get(Query& query, JobState& value);
void get(Query& query, Profile& value);
void get(Query& query, Cluster& value);
void get(Query& query, Plan& value);

template <class T>
void get(Query& query, std::optional<T>& value) {
  value.reset();
  if (query.column_is_null()) {
    query.skip_column();
  } else {
    get(query, value.emplace());
  }
}

/// Binds parameters in order.
template <class... Values>
Query& bind_values(Query& query, const Values&... values) {
  (put(query, values), ...);
  return query;
}

/// Reads the current row's columns in order.
template <class... Values>
void read_values(Query& query, Values&... values) {
  (get(query, values), ...);
}

}  // namespace commtune::sql
