#pragma once
// What targets of fuzzing demand of what they try.

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "perfmodel/base/error.h"

namespace commtune::fuzz {

/// Ends the process unless it holds. Not assert, which a release build leaves out.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

/// The value that `read` returns, or nothing if it refuses. Any other exception ends the process.
template <typename Read>
auto refused_or(const Read& read, ErrorCode other = ErrorCode::kBadInput) -> std::optional<decltype(read())> {
  try {
    return read();
  } catch (const Error& error) {
    require(error.code() == ErrorCode::kBadInput || error.code() == other, "a refusal has the right code");
    const std::string_view text = error.what();
    require(!text.empty() && text.size() < 4000, "a refusal is a short text");
    return std::nullopt;
  }
}

}  // namespace commtune::fuzz
