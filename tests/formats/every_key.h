#pragma once
// Documents in which every key and every word that can be stored occurs, made up in memory, and a database
// with rows of every table.

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "perfmodel/profile.h"
#include "probes/analysis/fit_cluster.h"
#include "probes/sample.h"

namespace commtune::tests {

/// Plans, profiles, clusters, reports of runs, samples and settings as this program writes them, by name.
/// What a name begins with, up to the first '-', says what it is.
std::map<std::string, nlohmann::json> every_document();

/// The digests that this program gives them: of plans and profiles (also of their layouts) by name, and a
/// cluster's fingerprint.
nlohmann::json every_digest();

/// Facts of machines that were never there, with all that enters a fingerprint and what does not.
probes::ClusterFacts made_up_facts();

/// The profile that all the plans are for.
Profile made_up_profile();

std::vector<probes::ProbeSample> every_sample();

/// Makes a database at `path` with rows in every table, by a clock that starts at noon and goes on a second
/// whenever it is read.
void make_database(const std::filesystem::path& path);

}  // namespace commtune::tests
