#include "api/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace commtune::api {
namespace {

/// A word's first so many letters say which one is meant.
constexpr std::size_t kTellingPrefix = 3;

/// Lower case without separators.
std::string skeleton(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '-' || c == '_' || c == '.' || c == ' ') continue;
    out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return out;
}

}  // namespace

int edit_distance(std::string_view a, std::string_view b) {
  std::vector<int> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    std::swap(before_last, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

std::string did_you_mean(std::string_view typed, std::span<const std::string_view> known) {
  const std::string wanted = skeleton(typed);
  int best = std::numeric_limits<int>::max();
  std::string_view closest;
  for (const std::string_view word : known) {
    const std::string whole = skeleton(word);
    const bool begins_so = wanted.size() >= kTellingPrefix && whole.starts_with(wanted);
    const int distance = begins_so ? 1 : edit_distance(wanted, whole);
    if (distance >= best) continue;
    best = distance;
    closest = word;
  }
  const auto most = std::max<std::size_t>(1, wanted.size() / 3);
  if (closest.empty() || static_cast<std::size_t>(best) > most) return {};
  return fmt::format(" (did you mean \"{}\"?)", closest);
}

std::string did_you_mean(std::string_view typed, std::span<const std::string> known) {
  const std::vector<std::string_view> views(known.begin(), known.end());
  return did_you_mean(typed, std::span<const std::string_view>(views));
}

std::size_t columns(std::string_view utf8) {
  return static_cast<std::size_t>(std::count_if(
      utf8.begin(), utf8.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

}  // namespace commtune::api
