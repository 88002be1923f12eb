#pragma once
// The table of routes, and finding the one that a request is for.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/rest/http/message.h"

namespace commtune::api::rest {

using Handler = std::function<Reply(const Request&)>;

struct Route {
  std::string method;   ///< "GET", "POST", "DELETE"
  std::string pattern;  ///< as in openapi.yaml: "/v1/plans/{id}/exports/{target}"
  Scope scope = Scope::kRead;
  Handler handler;
  bool keeps_answers = true;  ///< false: an Idempotency-Key is refused, since the answer holds a secret
};

class Router {
 public:
  void add(Route route);

  struct Match {
    const Route* route = nullptr;
    std::size_t index = 0;  ///< of the route, for metrics
    std::vector<std::string> arguments;
  };
  /// path  as it was sent, without the query
  std::optional<Match> find(std::string_view method, std::string_view path) const;
  /// Methods that the path has, for a 405: "GET, POST"; empty when there is no such path.
  std::string methods_of(std::string_view path) const;

  const std::vector<Route>& routes() const { return routes_; }

 private:
  std::vector<Route> routes_;
  std::vector<std::vector<std::string>> segments_;  // of each route's pattern
};

/// %XX decoded; nothing for a malformed escape or a NUL.
std::optional<std::string> percent_decoded(std::string_view text, bool plus_is_space);

/// "a=1&b=x%20y" as names and values. Nothing for a malformed escape or a name that comes twice.
std::optional<std::map<std::string, std::string>> parse_query(std::string_view query);

}  // namespace commtune::api::rest
