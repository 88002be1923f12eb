#pragma once
// Copying a database while it is in use. Internal.

#include <filesystem>

#include "store/database_connection.h"

namespace commtune::sql {

/// Writes a copy of the database to `target`, which must not exist, and leaves it on the disk, whole. Throws
/// Error{kStorage} naming the target.
void copy_database(DatabaseConnection& from, const std::filesystem::path& target);

}  // namespace commtune::sql
