#pragma once
// What is fuzzed: everything that reads text from outside. Each target takes any bytes, and ends the process
// if reading them throws something other than Error{kBadInput} or yields a value that breaks its own rules.
//
// libFuzzer programs are built with clang, the option COMMTUNE_FUZZ, and
// COMMTUNE_SANITIZE=address,undefined,fuzzer-no-link. Each takes its corpus folder as an argument:
//   fuzz_profile -max_total_time=120 NEW_FINDS tests/perfmodel/fuzz/corpus/profile
// The corpus, and mutations of it, also run in the normal suite (corpus_test.cc).

#include <string_view>

namespace commtune::fuzz {

void profile(std::string_view text);   ///< parse_json, profile_from_json and what a profile offers
void plan(std::string_view text);      ///< parse_json, plan_from_json, check and what a plan offers
void cluster(std::string_view text);   ///< parse_json, cluster_from_json and its curves
void quantity(std::string_view text);  ///< parse_rate, parse_size, parse_duration, and their formatting

}  // namespace commtune::fuzz
