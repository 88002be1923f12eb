#pragma once
// A database with rows in every table, and what is in a database, as text.

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "perfmodel/cluster.h"
#include "perfmodel/plan.h"
#include "perfmodel/profile.h"
#include "store/rows.h"

namespace commtune::tests {

struct EveryRow {
  Cluster cluster;
  Profile profile;
  std::vector<Plan> plans;  ///< for the profile
  std::vector<NewSample> samples;
  nlohmann::json messages;  ///< of a run
};

/// Makes the file, with a clock that starts at noon and goes on a second whenever it is read. Nothing is left
/// beside it.
void make_every_row(const std::filesystem::path& path, const EveryRow& rows);

/// The database's schema and, table by table, every row with every column as SQL writes it.
std::string text_of_database(const std::filesystem::path& path);

}  // namespace commtune::tests
