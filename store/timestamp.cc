#include "store/timestamp.h"

#include <array>
#include <charconv>
#include <cstdio>
#include <optional>

#include "perfmodel/base/error.h"

namespace commtune {
namespace {

/// The digits at [position, position + count), or nothing if one of them is none.
std::optional<int> digits(std::string_view text, std::size_t position, std::size_t count) {
  if (text.size() < position + count) {
    return std::nullopt;
  }
  int value = 0;
  for (const char c : text.substr(position, count)) {
    if (c < '0' || c > '9') {
      return std::nullopt;
    }
    value = value * 10 + (c - '0');
  }
  return value;
}

/// Whether the separators of "YYYY-MM-DDThh:mm:ss[.mmm]Z" are where they belong.
bool has_shape(std::string_view text) {
  const bool whole = text.size() == 20;
  const bool fraction = text.size() == 24 && text[19] == '.';
  return (whole || fraction) && text[4] == '-' && text[7] == '-' && text[10] == 'T' && text[13] == ':' &&
         text[16] == ':' && text.back() == 'Z';
}

[[noreturn]] void reject(std::string_view text) {
  throw Error(ErrorCode::kBadInput,
              "time \"" + std::string(text) + "\": expected UTC such as 2026-11-21T02:26:56.123Z");
}

}  // namespace

Timestamp system_now() {
  return std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

std::string to_iso8601(Timestamp time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ",
                static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                static_cast<unsigned>(date.day()), static_cast<int>(clock.hours().count()),
                static_cast<int>(clock.minutes().count()), static_cast<int>(clock.seconds().count()),
                static_cast<int>(clock.subseconds().count()));
  return text.data();
}

Timestamp timestamp_from_iso8601(std::string_view text) {
  if (!has_shape(text)) {
    reject(text);
  }
  const auto year = digits(text, 0, 4), month = digits(text, 5, 2), day = digits(text, 8, 2);
  const auto hour = digits(text, 11, 2), minute = digits(text, 14, 2), second = digits(text, 17, 2);
  const auto milli = text.size() == 24 ? digits(text, 20, 3) : std::optional<int>(0);
  if (!year || !month || !day || !hour || !minute || !second || !milli) {
    reject(text);
  }
  const std::chrono::year_month_day date{std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok() || *hour > 23 || *minute > 59 || *second > 59) {
    reject(text);
  }
  return std::chrono::sys_days(date) + std::chrono::hours(*hour) + std::chrono::minutes(*minute) +
         std::chrono::seconds(*second) + std::chrono::milliseconds(*milli);
}

}  // namespace commtune
