#pragma once
// What may be unknown, in JSON.

#include <nlohmann/json.hpp>
#include <optional>

namespace commtune::api {

template <typename Value>
nlohmann::json or_null(const std::optional<Value>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

}  // namespace commtune::api
