#include "api/options.h"

#include <fmt/format.h>

#include "perfmodel/base/json_reader.h"

namespace commtune::api {
namespace {

using nlohmann::json;

constexpr std::size_t kMostOfAList = 32, kMostCounts = 16;

void check_value(const JsonPlace& place, const Knob& knob) {
  switch (knob.takes) {
    case Takes::kTruth:
      place.truth();
      return;
    case Takes::kCount:
    case Takes::kSize:
      place.integer(whole(knob).least, whole(knob).most);
      return;
    case Takes::kRatio:
    case Takes::kTime:
      place.number(knob.least, knob.most);
      return;
    case Takes::kName:
      place.name();
      return;
    case Takes::kText:
      place.text();
      return;
    case Takes::kCounts:
      for (std::size_t i = 0, n = place.size(1, kMostCounts); i < n; ++i) {
        const JsonPlace each = place[i];
        each.integer(whole(knob).least, whole(knob).most);
      }
      return;
    case Takes::kNames:
      for (std::size_t i = 0, n = place.size(1, kMostOfAList); i < n; ++i) {
        const JsonPlace each = place[i];
        if (each.name().size() > whole(knob).most)
          each.fail(fmt::format("at most {} letters", whole(knob).most));
      }
      return;
  }
}

std::string as_argument(const json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

void add_flag(const json& value, const Knob& knob, std::vector<std::string>& arguments) {
  const std::string flag(long_flag(knob));
  if (knob.takes == Takes::kTruth) {
    if (value == json(true)) arguments.push_back(flag);
  } else if (knob.takes == Takes::kNames) {
    for (const json& each : value) arguments.push_back(flag + "=" + as_argument(each));
  } else if (knob.takes == Takes::kCounts) {
    std::string list;
    for (const json& each : value) list += (list.empty() ? "" : ",") + as_argument(each);
    arguments.push_back(flag + "=" + list);
  } else {
    arguments.push_back(flag + "=" + as_argument(value) + (knob.takes == Takes::kTime ? "s" : ""));
  }
}

}  // namespace

std::string_view long_flag(const Knob& knob) { return knob.flag.substr(knob.flag.find(',') + 1); }

std::string_view short_flag(const Knob& knob) { return knob.flag.substr(0, knob.flag.find(',')); }

void check_request(const JsonPlace& body, std::span<const Knob> knobs) {
  std::vector<std::string_view> names;
  for (const Knob& knob : knobs) names.push_back(knob.name);
  body.expect_keys(names);
  for (const Knob& knob : knobs)
    if (const auto place = body.find(knob.name)) check_value(*place, knob);
}

void add_flags(const json& request, std::span<const Knob> knobs, std::vector<std::string>& arguments) {
  for (const Knob& knob : knobs) {
    const auto value = request.find(knob.name);
    if (value != request.end() && !value->is_null()) add_flag(*value, knob, arguments);
  }
}

}  // namespace commtune::api
