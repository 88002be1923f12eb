#pragma once
// JSON as the store writes it: one line, keys in order, and what is no UTF-8 replaced.

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace commtune {

std::string json_text(const nlohmann::json& value);

/// json_text() of an object whose members are written out already, so that what is known early need not wait
/// for what is known last.
std::string json_text_of_members(const std::map<std::string, std::string>& members);

/// json_text() of an object some of whose members are written out already.
std::string json_text(const nlohmann::json& object, const std::map<std::string, std::string>& written);

}  // namespace commtune
