#include "api/series.h"

#include <charconv>

namespace commtune::api {

int parse_count(std::string_view text) {
  constexpr int kMost = 1'000'000;
  int value = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || at != end || value < 0 || value > kMost)
    throw Error(ErrorCode::kBadInput,
                fmt::format("\"{}\": must be a whole number from 0 to {}", text, kMost));
  return value;
}

}  // namespace commtune::api
