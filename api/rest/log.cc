#include "api/rest/log.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "store/timestamp.h"

namespace commtune::api::rest {
namespace {

std::string_view name_of(Level level) {
  switch (level) {
    case Level::kInfo:
      return "info";
    case Level::kWarning:
      return "warning";
    case Level::kError:
      return "error";
  }
  return "error";
}

nlohmann::ordered_json value_json(const Log::Value& value) {
  return std::visit([](const auto& held) { return nlohmann::ordered_json(held); }, value);
}

}  // namespace

void Log::say(Level level, std::string_view event, Fields fields) {
  std::string line;
  if (json_) {
    nlohmann::ordered_json document{
        {"time", to_iso8601(system_now())}, {"level", name_of(level)}, {"event", event}};
    for (const auto& [name, value] : fields) document[std::string(name)] = value_json(value);
    line = document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  } else {
    line = fmt::format("{} {:<7} {}", to_iso8601(system_now()), name_of(level), event);
    // Texts are quoted as in JSON, so that no client can write a line of its own.
    for (const auto& [name, value] : fields)
      line += fmt::format(" {}={}", name,
                          value_json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }
  line += '\n';
  const std::lock_guard lock(mutex_);
  write_(line);
}

}  // namespace commtune::api::rest
