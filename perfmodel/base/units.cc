#include "perfmodel/base/units.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <span>

#include "perfmodel/base/error.h"

namespace commtune {

namespace {

constexpr std::size_t kLongestQuoted = 60;  // letters, so that an error stays one line

/// The text as an error shows it: in quotes, cut where it is long, control characters replaced.
std::string quote(std::string_view text) {
  std::string shown{text.substr(0, kLongestQuoted)};
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; },
      '?');
  return "\"" + shown + (text.size() > kLongestQuoted ? "...\"" : "\"");
}

[[noreturn]] void reject(std::string_view what, std::string_view text, const std::string& rule) {
  throw Error(ErrorCode::kBadInput, std::string(what) + " " + quote(text) + ": " + rule);
}

std::string_view trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) {
    return {};
  }
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// "12.5GB/s" as "12.5" and "GB/s". The number part may be empty.
struct Quantity {
  std::string_view number, unit;
};

Quantity split(std::string_view text) {
  text = trim(text);
  std::size_t end = 0;
  while (end < text.size() && ((text[end] >= '0' && text[end] <= '9') || text[end] == '.')) {
    ++end;
  }
  return {text.substr(0, end), trim(text.substr(end))};
}

/// A decimal number without sign or exponent.
double parse_number(std::string_view what, std::string_view text, std::string_view number) {
  double value = 0;
  const char* const end = number.data() + number.size();
  const auto [stop, code] = std::from_chars(number.data(), end, value, std::chars_format::fixed);
  if (number.empty() || code != std::errc{} || stop != end || !std::isfinite(value)) {
    reject(what, text, "expected a number that is not negative, then its unit");
  }
  return value;
}

struct Unit {
  std::string_view name;
  double factor;
};

const Unit* find_unit(std::span<const Unit> units, std::string_view name) {
  const auto* const found =
      std::find_if(units.data(), units.data() + units.size(), [&](const Unit& u) { return u.name == name; });
  return found == units.data() + units.size() ? nullptr : found;
}

/// Bytes per second of a bandwidth unit: a prefix, then bits ("bit", "bit/s", "b/s", "bps") or bytes ("B/s").
/// 0 if unknown. Small prefixes only before the word "bit", where m cannot be read as milli by habit of tc.
double bytes_per_second(std::string_view unit) {
  static constexpr std::array<Unit, 5> kBits{
      {{"bit/s", 0.125}, {"bits/s", 0.125}, {"bit", 0.125}, {"b/s", 0.125}, {"bps", 0.125}}};
  static constexpr std::array<Unit, 5> kPrefixes{{{"", 1}, {"K", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}}};
  static constexpr std::array<Unit, 4> kSmallPrefixes{{{"k", 1e3}, {"m", 1e6}, {"g", 1e9}, {"t", 1e12}}};
  static constexpr std::array<Unit, 4> kBinaryPrefixes{{{"Ki", 1024.0},
                                                        {"Mi", 1024.0 * 1024},
                                                        {"Gi", 1024.0 * 1024 * 1024},
                                                        {"Ti", 1024.0 * 1024 * 1024 * 1024}}};
  for (const Unit& bits : kBits) {
    if (!unit.ends_with(bits.name)) {
      continue;
    }
    const std::string_view prefix = unit.substr(0, unit.size() - bits.name.size());
    if (const Unit* p = find_unit(kPrefixes, prefix)) {
      return p->factor * bits.factor;
    }
    if (const Unit* p = find_unit(kSmallPrefixes, prefix);
        p != nullptr && (bits.name.starts_with("bit") || prefix == "k")) {
      return p->factor * bits.factor;
    }
  }
  if (!unit.ends_with("B/s")) {
    return 0;
  }
  const std::string_view prefix = unit.substr(0, unit.size() - 3);
  if (prefix == "k") {
    return 1e3;
  }
  const Unit* p = find_unit(kPrefixes, prefix);
  p = p != nullptr ? p : find_unit(kBinaryPrefixes, prefix);
  return p != nullptr ? p->factor : 0;
}

/// A value with three significant digits and no exponent. The exponent is that of the rounded value.
std::string three_digits(double value) {
  std::array<char, 400> text{};
  std::snprintf(text.data(), text.size(), "%.2e", value);
  int exponent = 0;
  if (const char* e = std::strchr(text.data(), 'e')) {
    const char* const digits = e[1] == '+' ? e + 2 : e + 1;
    std::from_chars(digits, text.data() + std::strlen(text.data()), exponent);
  }
  const int decimals = std::clamp(2 - exponent, 0, 12);
  const int length = std::snprintf(text.data(), text.size(), "%.*f", decimals, value);
  return {text.data(), static_cast<std::size_t>(std::max(length, 0))};
}

}  // namespace

SecondsPerByte parse_rate(std::string_view text) {
  constexpr double kSlowest = 0.125;  // 1 bit/s
  constexpr double kFastest = 1e18;   // bytes per second: beyond what any link has, and finite when inverted
  const auto [number, unit] = split(text);
  const double value = parse_number("rate", text, number);
  if (unit.empty()) {
    reject("rate", text, "no unit; write for example 1Gbit, 100Gb/s or 12.5GB/s");
  }
  const double factor = bytes_per_second(unit);
  if (factor == 0) {
    reject("rate", text, "unknown unit " + quote(unit) + "; write for example 1Gbit, 100Gb/s or 12.5GB/s");
  }
  const double rate = value * factor;
  if (!(rate >= kSlowest && rate <= kFastest)) {
    reject("rate", text, "must be at least 1 bit/s and at most 10^18 B/s");
  }
  return {1 / rate};
}

Bytes parse_size(std::string_view text) {
  static constexpr std::array<Unit, 10> kUnits{{{"", 0},
                                                {"B", 0},
                                                {"K", 10},
                                                {"M", 20},
                                                {"G", 30},
                                                {"T", 40},
                                                {"KiB", 10},
                                                {"MiB", 20},
                                                {"GiB", 30},
                                                {"TiB", 40}}};
  constexpr auto kLargest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const auto [number, unit] = split(text);
  if (number.empty()) {
    reject("size", text, "expected a number that is not negative, then its unit");
  }
  const Unit* const found = find_unit(kUnits, unit);
  if (found == nullptr) {
    reject(
        "size", text,
        "unknown unit " + quote(unit) + "; K, M, G, T and KiB, MiB, GiB, TiB are powers of two, B is bytes");
  }
  const auto shift = static_cast<unsigned>(found->factor);
  if (number.find('.') == std::string_view::npos) {
    std::uint64_t count = 0;
    const auto [stop, code] = std::from_chars(number.data(), number.data() + number.size(), count);
    if (code != std::errc{} || count > (kLargest >> shift)) {
      reject("size", text, "must be less than 8 EiB");
    }
    return {count << shift};
  }
  const double bytes = parse_number("size", text, number) * std::ldexp(1.0, static_cast<int>(shift));
  constexpr double kLargestExact = 9007199254740992.0;  // 2^53
  if (bytes > kLargestExact || bytes != std::floor(bytes)) {
    reject("size", text, "must be a whole number of bytes");
  }
  return {static_cast<std::uint64_t>(bytes)};
}

Seconds parse_duration(std::string_view text) {
  static constexpr std::array<Unit, 10> kUnits{{{"ns", 1e-9},
                                                {"us", 1e-6},
                                                {"\u00b5s", 1e-6},
                                                {"\u03bcs", 1e-6},
                                                {"ms", 1e-3},
                                                {"s", 1},
                                                {"sec", 1},
                                                {"min", 60},
                                                {"h", 3600},
                                                {"d", 86400}}};
  constexpr double kLongest = 1e8;  // seconds, three years: clocks count nanoseconds in 64 bits
  const auto [number, unit] = split(text);
  const double value = parse_number("duration", text, number);
  const Unit* const found = find_unit(kUnits, unit);
  if (found == nullptr) {
    reject("duration", text,
           (unit.empty() ? "no unit" : "unknown unit " + quote(unit)) +
               "; write for example 200us, 1.5ms, 10s or 2min");
  }
  const double seconds = value * found->factor;
  if (seconds > kLongest) {
    reject("duration", text, "must be at most 10^8 s");
  }
  return Seconds{seconds};
}

std::string format_size(Bytes size) {
  static constexpr std::array<const char*, 6> kUnits{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (size.count < 1024) {
    return std::to_string(size.count) + " B";
  }
  double value = static_cast<double>(size.count) / 1024;
  std::size_t unit = 0;
  while (value >= 1023.95 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f %s", value, kUnits[unit]);
  return text.data();
}

std::string format_time(Seconds time) {
  static constexpr std::array<Unit, 3> kUnits{{{"ns", 1e-9}, {"\u00b5s", 1e-6}, {"ms", 1e-3}}};
  const double seconds = time.count();
  if (seconds == 0 || !std::isfinite(seconds)) {
    return (seconds == 0          ? "0"
            : std::isnan(seconds) ? "nan"
            : seconds > 0         ? "inf"
                                  : "-inf") +
           std::string(" s");
  }
  // Nothing is measured in picoseconds: a fit's remainder of that size is rounding.
  if (std::abs(seconds) < 5e-12) return "0 s";
  if (std::abs(seconds) < 1e-9) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.2f ns", seconds / 1e-9);
    return text.data();
  }
  for (const Unit& unit : kUnits) {
    if (std::abs(seconds) < 999.5 * unit.factor) {
      return three_digits(seconds / unit.factor) + " " + std::string(unit.name);
    }
  }
  return three_digits(seconds) + " s";
}

std::string format_bandwidth(SecondsPerByte b) {
  if (b.value == 0) {
    return "infinite";
  }
  return three_digits(1 / b.value / 1e9) + " GB/s";
}

}  // namespace commtune
