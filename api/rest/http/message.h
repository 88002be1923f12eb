#pragma once
// A request and its answer as the routes see them: plain values, nothing of the HTTP library.

#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/rest/http/scope.h"

namespace commtune::api::rest {

struct Request {
  std::string id;      ///< 16 hexadecimal digits; in the answer, in problems and in logs
  std::string method;  ///< "GET"; a HEAD is a GET here
  std::string path;
  std::vector<std::string> arguments;        ///< what {name} stood for in the route, in order, decoded
  std::map<std::string, std::string> query;  ///< decoded; a name that came twice is refused before
  std::string body;
  std::string idempotency_key;  ///< empty: none
  std::string if_none_match;    ///< empty: none
  std::string last_event_id;
  Caller caller;
  std::function<bool()> client_gone;  ///< nobody waits for the answer any more; may be empty

  /// A query parameter, or "" when it is absent.
  std::string_view parameter(const std::string& name) const;
  /// The same as a whole number. Throws Error{kBadInput} naming the parameter and the rule.
  long long integer(const std::string& name, long long least, long long most, long long otherwise) const;
  double number(const std::string& name, double least, double most, double otherwise) const;
  /// The body as JSON; an empty one is an empty object. Throws Error{kBadInput}.
  nlohmann::json json() const;
};

/// Writes a piece of a streamed answer; false: the client is gone or the service stops.
using Sink = std::function<bool(std::string_view)>;

struct Reply {
  int status = 200;
  std::string type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
  /// When set, it is called again and again in place of sending the body, until it returns false. Each call
  /// ends within a second or so.
  std::function<bool(const Sink&)> stream;
};

/// A JSON answer in one line.
Reply json_reply(const nlohmann::json& document, int status = 200);
std::string to_text(const nlohmann::json& document);

}  // namespace commtune::api::rest
