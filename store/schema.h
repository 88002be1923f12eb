#pragma once
// The tables, as a list of steps from one version of the file to the next. Internal.
//
// A file of ours says so in its header: PRAGMA application_id is kApplicationId, PRAGMA user_version the
// number of steps taken. A step that has been released is never edited; what changes is a further step.

#include <cstdint>
#include <string_view>

#include "store/database_connection.h"

namespace commtune::sql {

constexpr std::int64_t kApplicationId = 0x636f6d74;  // "comt"

int newest_schema();

/// The SQL that takes the file from version `from` to from + 1, 0 <= from < newest_schema(). What SQL cannot
/// compute is filled in after it.
std::string_view schema_step(int from);

/// Brings the file to `to`, all or nothing; does nothing when another process has done so meanwhile.
void migrate(DatabaseConnection& connection, int to);

}  // namespace commtune::sql
