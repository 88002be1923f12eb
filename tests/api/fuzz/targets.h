#pragma once
// What is fuzzed here: everything in api/ that reads text from outside. Each target takes any bytes and ends
// the process when something else comes of them than an answer or a refusal. tests/fuzz/run builds and runs
// them with libFuzzer; the corpus, and mutations of it, also run in the normal suite.

#include <string_view>

namespace commtune::fuzz {

void head(std::string_view text);      ///< heads of HTTP requests
void hosts(std::string_view text);     ///< hostfiles, host lists, ranges, addresses to listen on
void question(std::string_view text);  ///< the body of POST /v1/plans, up to what the tuner would get
void target(std::string_view text);    ///< a request's path and query, and finding its route
void trace(std::string_view text);     ///< traces of PyTorch's profiler and Chakra, up to the profile
void wire(std::string_view text);      ///< orders to ranks, and their reports
/// A whole request to a whole service with a database: "POST /v1/runs\nName: value\n\nbody". No answer is a
/// defect (5xx), and each is well-formed.
void service(std::string_view text);

}  // namespace commtune::fuzz
