#pragma once
// Lists of values as people type them for an axis: "4", "1,2,6", "1..2048".

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "perfmodel/error.h"

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

}  // namespace commtune::api
