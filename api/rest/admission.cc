#include "api/rest/admission.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <random>

#include "api/actions/tokens.h"

namespace commtune::api::rest {
namespace {

constexpr std::size_t kLongestKey = 128;
constexpr double kBurstSeconds = 2;

bool is_word(std::string_view text, std::size_t most) {
  return !text.empty() && text.size() <= most && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
  });
}

HttpError no_token(Scope needed) {
  return {
      401, "not_authenticated",
      fmt::format("this needs Authorization: Bearer TOKEN with a valid token of the scope {}: `tune serve` "
                  "prints one at its start, in an address for a browser, and `tune token make` makes others",
                  to_string(needed))};
}

std::vector<std::pair<std::string, std::string>> challenge() {
  return {{"WWW-Authenticate", "Bearer realm=\"commtune\""}};
}

HttpError too_little(Scope needed, const Caller& caller) {
  return {403, "forbidden",
          fmt::format("this needs a token with the scope {}; \"{}\" has {}", to_string(needed), caller.name,
                      to_string(caller.scope))};
}

}  // namespace

RateLimit::RateLimit(double per_second)
    : per_second_(per_second), burst_(std::max(1.0, per_second * kBurstSeconds)) {}

double RateLimit::take(std::int64_t caller, std::chrono::steady_clock::time_point now) {
  const std::lock_guard lock(mutex_);
  const auto [found, fresh] = buckets_.try_emplace(caller, Bucket{burst_, now});
  Bucket& bucket = found->second;
  if (!fresh) {
    const double passed = std::chrono::duration<double>(now - bucket.filled).count();
    bucket.tokens = std::min(burst_, bucket.tokens + passed * per_second_);
    bucket.filled = now;
  }
  if (bucket.tokens < 1) return (1 - bucket.tokens) / per_second_;
  bucket.tokens -= 1;
  return 0;
}

Admission::Admission(const ServeOptions& options, std::string start_token, const Router& router,
                     TokenCache& tokens, Metrics& metrics)
    : options_(options),
      start_token_(std::move(start_token)),
      router_(router),
      tokens_(tokens),
      metrics_(metrics),
      needs_token_(options.authentication == Authentication::kToken || !is_local(options)),
      rate_(options.rate_per_token) {}

std::optional<HttpError> Admission::check_shape(const Head& head) const {
  if (!head.header("Transfer-Encoding").empty())
    return HttpError{411, "length_required", "a body needs a Content-Length; chunked bodies are not taken"};
  if (head.content_length > options_.max_body)
    return HttpError{413, "too_large",
                     fmt::format("a body may have at most {} B, see --max-body", options_.max_body)};
  if (head.content_length == 0) return {};
  if (!head.header("Content-Encoding").empty())
    return HttpError{415, "unsupported_media_type", "bodies are taken as they are, without Content-Encoding"};
  if (!head.header("Content-Type").starts_with("application/json"))
    return HttpError{415, "unsupported_media_type", "Content-Type: expected application/json"};
  return {};
}

/// A page of another site must not use the browser of somebody who may come in: neither by a form (the type
/// of the body), nor by a script (Origin), nor by a name that it lets point here (check_host).
std::optional<HttpError> Admission::check_origin(const Head& head) const {
  const std::string host = head.header("Host");
  const std::string origin = head.header("Origin");
  if (origin.empty() || origin.substr(std::min(origin.size(), origin.find("//") + 2)) == host) return {};
  return HttpError{403, "forbidden", "Origin: pages of other sites are not answered"};
}

/// Such a page does not know a token, so a name is only looked at where none is given.
std::optional<HttpError> Admission::check_host(const Head& head, const Caller& caller) const {
  const std::string host = head.header("Host");
  if (needs_token_ || caller.token != kNoToken || host.empty() || is_loopback(host_of(host).value_or("")))
    return {};
  return HttpError{403, "forbidden", "Host: without a token only names of the loopback address are answered"};
}

/// Every user of this machine: they may look and ask for plans, and act only with a token.
std::optional<Caller> Admission::without_token(const Head& head) const {
  if (needs_token_) return {};
  return Caller{Scope::kPlan, kNoToken, "no token", head.address};
}

std::optional<Caller> Admission::identify(const Head& head) {
  constexpr std::string_view kBearer = "Bearer ";
  const std::string header = head.header("Authorization");
  if (!header.starts_with(kBearer)) return without_token(head);
  const std::string_view secret = std::string_view(header).substr(kBearer.size());
  if (!start_token_.empty() && is_same_secret(secret, start_token_))
    return Caller{Scope::kOperate, kStartToken, "start", head.address};
  // A page or a file may still have the one of an earlier start: that is as good as none.
  if (is_start_secret(secret)) return without_token(head);
  const auto id = token_id(secret);
  const auto row = id ? tokens_.find(*id) : std::nullopt;
  if (!row || !is_secret_of(*row, secret) || !row->valid(system_now())) return {};
  Caller caller{Scope::kNone, row->id, row->name, head.address};
  for (const std::string& name : row->scopes)
    if (const auto scope = scope_of(name)) caller.scope = std::max(caller.scope, *scope);
  return caller;
}

std::variant<Admitted, Refused> Admission::admit(const Head& head, bool counts) {
  const std::size_t none = router_.routes().size();
  const std::string_view target = head.target;
  const std::size_t question = target.find('?');
  const std::string path(target.substr(0, question));
  const std::string method = head.method == "HEAD" ? "GET" : head.method;

  auto match = router_.find(method, path);
  const std::size_t index = match ? match->index : none;
  const auto refuse = [index](HttpError error,
                              std::vector<std::pair<std::string, std::string>> headers = {}) {
    return Refused{std::move(error), index, std::move(headers)};
  };
  if (const auto error = check_origin(head)) return refuse(*error);
  const Scope needed = match ? match->route->scope : Scope::kRead;
  Caller caller{Scope::kNone, kNoToken, "", head.address};
  if (needed != Scope::kNone) {
    auto known = identify(head);
    if (!known) {
      ++metrics_.not_authenticated;
      return refuse(no_token(needed), challenge());
    }
    caller = std::move(*known);
    const bool limited = counts && caller.token != kNoToken;
    const double wait = limited ? rate_.take(caller.token, std::chrono::steady_clock::now()) : 0;
    if (wait > 0) {
      ++metrics_.rate_limited;
      return refuse({429, "too_many_requests",
                     fmt::format("a token may ask {:g} times a second, see --rate", options_.rate_per_token)},
                    {{"Retry-After", fmt::format("{:.0f}", std::ceil(wait))}});
    }
  }
  if (const auto error = check_host(head, caller)) return refuse(*error);
  if (!match) {
    const std::string methods = router_.methods_of(path);
    if (methods.empty())
      return refuse({404, "not_found", fmt::format("no such path; {} has them all", "/openapi.yaml")});
    return refuse({405, "method_not_allowed", fmt::format("this path takes {}", methods)},
                  {{"Allow", methods}});
  }
  if (caller.scope < needed && caller.token == kNoToken) {
    ++metrics_.not_authenticated;
    return refuse(no_token(needed), challenge());
  }
  if (caller.scope < needed) return refuse(too_little(needed, caller));
  if (const auto error = check_shape(head)) return refuse(*error);

  Admitted admitted{match->route, match->index, {}};
  Request& request = admitted.request;
  request.method = method;
  request.path = path;
  request.arguments = std::move(match->arguments);
  request.caller = std::move(caller);
  request.client_gone = head.client_gone;
  request.if_none_match = head.header("If-None-Match");
  request.idempotency_key = head.header("Idempotency-Key");
  if (!request.idempotency_key.empty() && !is_word(request.idempotency_key, kLongestKey))
    return refuse({400, "bad_input", "Idempotency-Key: expected 1 to 128 letters, digits, - and _"});
  if (!request.idempotency_key.empty() && !match->route->keeps_answers)
    return refuse(
        {400, "bad_input", "Idempotency-Key: not taken here, since answers are kept and a secret is not"});
  if (question != std::string_view::npos) {
    auto query = parse_query(target.substr(question + 1));
    if (!query) return refuse({400, "bad_input", "the query is malformed, or names a parameter twice"});
    request.query = std::move(*query);
  }
  return admitted;
}

std::optional<Reply> refuse_below(Scope needed, const Request& request, Metrics& metrics) {
  const Caller& caller = request.caller;
  if (caller.scope >= needed) return {};
  if (caller.token != kNoToken) return problem(too_little(needed, caller), request.id);
  ++metrics.not_authenticated;
  Reply reply = problem(no_token(needed), request.id);
  reply.headers = challenge();
  return reply;
}

std::string new_request_id() {
  // Unguessable is not asked for, only different: a random start, then a step that visits all numbers.
  static std::atomic<std::uint64_t> next{std::random_device{}() * 0x1'0000'0001ULL};
  return fmt::format("{:016x}", next.fetch_add(0x9e37'79b9'7f4a'7c15ULL));
}

}  // namespace commtune::api::rest
