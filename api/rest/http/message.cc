#include "api/rest/http/message.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "perfmodel/base/error.h"
#include "perfmodel/base/json_reader.h"

namespace commtune::api::rest {
namespace {

template <typename Number>
Number parse_number(const std::string& name, std::string_view text, Number least, Number most,
                    std::string_view what) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !(value >= least && value <= most))
    throw Error(ErrorCode::kBadInput, fmt::format("parameter {} = \"{}\": expected {} from {} to {}", name,
                                                  text.substr(0, 64), what, least, most));
  return value;
}

}  // namespace

std::string_view Request::parameter(const std::string& name) const {
  const auto found = query.find(name);
  return found == query.end() ? std::string_view{} : std::string_view(found->second);
}

long long Request::integer(const std::string& name, long long least, long long most,
                           long long otherwise) const {
  const std::string_view text = parameter(name);
  return text.empty() ? otherwise : parse_number(name, text, least, most, "a whole number");
}

double Request::number(const std::string& name, double least, double most, double otherwise) const {
  const std::string_view text = parameter(name);
  return text.empty() ? otherwise : parse_number(name, text, least, most, "a number");
}

nlohmann::json Request::json() const {
  if (body.empty()) return nlohmann::json::object();
  return parse_json(body, "request body");
}

std::string to_text(const nlohmann::json& document) {
  return document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Reply json_reply(const nlohmann::json& document, int status) {
  Reply reply;
  reply.status = status;
  reply.body = to_text(document);
  return reply;
}

}  // namespace commtune::api::rest
