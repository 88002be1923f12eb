#pragma once
// Who may come in: what is asked of every request before its route is carried out.

#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>

#include "api/rest/caches.h"
#include "api/rest/http/listener.h"
#include "api/rest/http/options.h"
#include "api/rest/http/problem.h"
#include "api/rest/http/router.h"
#include "api/rest/metrics.h"

namespace commtune::api::rest {

/// Requests per second and caller: a bucket that holds two seconds' worth.
class RateLimit {
 public:
  /// Two seconds' worth may come at once, and always one.
  explicit RateLimit(double per_second);
  /// 0 when the request may pass; otherwise the seconds until it may.
  double take(std::int64_t caller, std::chrono::steady_clock::time_point now);

 private:
  struct Bucket {
    double tokens = 0;
    std::chrono::steady_clock::time_point filled;
  };
  const double per_second_, burst_;
  std::mutex mutex_;                                  // guards the buckets
  std::unordered_map<std::int64_t, Bucket> buckets_;  // at most one a token of the store
};

/// A request that may be carried out.
struct Admitted {
  const Route* route = nullptr;
  std::size_t index = 0;  ///< of the route
  Request request;        ///< without its body
};

/// A request that may not, and the route that it was for (or the number of routes).
struct Refused {
  HttpError error;
  std::size_t index = 0;
  std::vector<std::pair<std::string, std::string>> headers;
};

class Admission {
 public:
  /// start_token  the secret of this start; empty: there is none
  Admission(const ServeOptions& options, std::string start_token, const Router& router, TokenCache& tokens,
            Metrics& metrics);

  /// counts  against the caller's rate; false when the same request is looked at again with its body
  std::variant<Admitted, Refused> admit(const Head& head, bool counts);

  /// Without one nothing may be asked. False: only what acts needs one.
  bool needs_token() const { return needs_token_; }

 private:
  std::optional<HttpError> check_shape(const Head& head) const;
  std::optional<HttpError> check_origin(const Head& head) const;
  std::optional<HttpError> check_host(const Head& head, const Caller& caller) const;
  std::optional<Caller> without_token(const Head& head) const;
  std::optional<Caller> identify(const Head& head);

  const ServeOptions& options_;
  const std::string start_token_;
  const Router& router_;
  TokenCache& tokens_;
  Metrics& metrics_;
  const bool needs_token_;
  RateLimit rate_;
};

/// What a caller is told whose scope is too small for this request, where others of its route need less;
/// nothing where it is large enough.
std::optional<Reply> refuse_below(Scope needed, const Request& request, Metrics& metrics);

/// 16 hexadecimal digits, never the same twice in a process.
std::string new_request_id();

}  // namespace commtune::api::rest
