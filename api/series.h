#pragma once
// Lists of values as people type them for an axis: "4", "1,2,6", "1..2048".

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "perfmodel/base/error.h"
#include "perfmodel/base/units.h"

namespace commtune::api {

constexpr std::size_t kLongestSeries = 256;

/// A whole number from 0 to 1,000,000. Throws Error{kBadInput}.
int parse_count(std::string_view text);

/// One value, several between commas, or "first..last": first, next(first), ... as long as they stay below
/// last, then last.
///
/// parse  text -> Value; what it throws goes on to the caller
/// next   Value -> a greater Value
/// throws Error{kBadInput} for an empty part, a last below the first, or more than 256 values
template <typename Value, typename Parse, typename Next>
std::vector<Value> series(std::string_view text, const Parse& parse, const Next& next) {
  std::vector<Value> list;
  const auto add = [&](Value value) {
    if (list.size() == kLongestSeries)
      throw Error(ErrorCode::kBadInput,
                  fmt::format("\"{}\": names more than {} values", text, kLongestSeries));
    list.push_back(value);
  };
  if (const auto dots = text.find(".."); dots != std::string_view::npos) {
    const Value last = parse(text.substr(dots + 2));
    Value value = parse(text.substr(0, dots));
    if (last < value)
      throw Error(ErrorCode::kBadInput, fmt::format("\"{}\": the last is below the first", text));
    for (; value < last; value = next(value)) add(value);  // ends: a value that does not grow fills the list
    add(last);
    return list;
  }
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t comma = std::min(text.find(',', from), text.size());
    add(parse(text.substr(from, comma - from)));
    from = comma + 1;
  }
  return list;
}

/// "8", "1,2,6", or "4..64", which doubles: 4, 8, 16, 32, 64 (an end that is no doubling closes the list;
/// "0..4" is 0, 1, 2, 4). At most 256 entries, each from 0 to 1,000,000. Throws Error{kBadInput}.
std::vector<int> count_series(std::string_view text);
/// "1Gbit", "1Gbit,25Gbit" or "1Gbit..16Gbit" (doubles). Throws Error{kBadInput}.
std::vector<SecondsPerByte> rate_series(std::string_view text);
/// "5us", "5us,20us" or "5us..80us" (doubles). Throws Error{kBadInput}.
std::vector<Seconds> duration_series(std::string_view text);

}  // namespace commtune::api
