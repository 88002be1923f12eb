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

std::vector<int> count_series(std::string_view text) {
  return series<int>(text, parse_count, [](int n) { return n == 0 ? 1 : 2 * n; });
}

std::vector<SecondsPerByte> rate_series(std::string_view text) {
  // A rate that doubles halves the time per byte, so the ends are compared as rates.
  std::vector<SecondsPerByte> list;
  for (const double rate : series<double>(
           text, [](std::string_view word) { return 1 / parse_rate(word).value; },
           [](double rate) { return 2 * rate; }))
    list.push_back({1 / rate});
  return list;
}

std::vector<Seconds> duration_series(std::string_view text) {
  return series<Seconds>(text, parse_duration, [](Seconds time) { return 2 * time; });
}

}  // namespace commtune::api
