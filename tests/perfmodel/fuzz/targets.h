#pragma once
// What is fuzzed here: everything in perfmodel/ that reads text from outside. Each target takes any bytes,
// and ends the process if reading them throws something other than Error{kBadInput} or yields a value that
// breaks its own rules. tests/fuzz/run builds and runs them with libFuzzer; the corpus, and mutations of it,
// also run in the normal suite.

#include <string_view>

namespace commtune::fuzz {

void profile(std::string_view text);      ///< parse_json, profile_from_json and what a profile offers
void plan(std::string_view text);         ///< parse_json, plan_from_json, check and what a plan offers
void cluster(std::string_view text);      ///< parse_json, cluster_from_json and its curves
void nccl_tuning(std::string_view text);  ///< nccl_tuning_table_from_text, also with a digest that fits
void quantity(std::string_view text);     ///< parse_rate, parse_size, parse_duration, and their formatting

}  // namespace commtune::fuzz
