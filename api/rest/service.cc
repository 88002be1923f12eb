#include "api/rest/service.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "perfmodel/base/digest.h"
#include "perfmodel/base/error.h"
#include "store/stored_replies.h"

namespace commtune::api::rest {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::chrono::minutes kAbandonedAfter{10};

std::size_t planning_threads(const ServeOptions& options) {
  if (options.planning_threads > 0) return static_cast<std::size_t>(options.planning_threads);
  return std::max(1U, std::thread::hardware_concurrency());
}

std::int64_t whole_seconds(std::chrono::milliseconds time) {
  return std::chrono::ceil<std::chrono::seconds>(time).count();
}

std::string etag_of(std::string_view body) { return fmt::format("\"{}\"", Digest().add(body).hex()); }

/// True when the header names this tag, or any.
bool has_tag(std::string_view header, const std::string& tag) {
  return header == "*" || header.find(tag) != std::string_view::npos;
}

/// Where the thing that a kept answer is about can be found: not kept, but it follows from the answer.
std::string location_of(const Request& request, int status, const std::string& body) {
  const nlohmann::json document = nlohmann::json::parse(body, nullptr, false);
  if (!document.is_object() || !document.contains("id")) return {};
  const std::string id = document.at("id").dump();
  return status == 202 ? "/v1/jobs/" + id : status == 201 ? request.path + "/" + id : std::string{};
}

class InFlight {
 public:
  explicit InFlight(Metrics& metrics) : metrics_(metrics) { ++metrics_.in_flight; }
  ~InFlight() { --metrics_.in_flight; }
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;

 private:
  Metrics& metrics_;
};

std::vector<std::pair<std::string, std::string>> labels_of(const Router& router) {
  std::vector<std::pair<std::string, std::string>> labels;
  for (const Route& route : router.routes()) labels.emplace_back(route.method, route.pattern);
  return labels;
}

Router make_routes(Service& service) {
  Router router;
  add_plan_routes(router, service);  // the busiest first
  add_service_routes(router, service);
  add_cluster_routes(router, service);
  add_profile_routes(router, service);
  add_run_routes(router, service);
  add_what_if_routes(router, service);
  add_job_routes(router, service);
  add_dashboard_routes(router);
  return router;
}

}  // namespace

Service::Service(const ServiceParts& parts, Store store)
    : parts_(parts),
      started_(system_now()),
      store_(std::move(store)),
      router_(make_routes(*this)),
      metrics_(std::make_unique<Metrics>(labels_of(router_))),
      planning_(planning_threads(parts.options)),
      what_ifs_(std::max<std::size_t>(2, planning_threads(parts.options)) - 1),
      fits_(store_),
      profiles_(store_),
      tokens_(store_),
      plans_({store_, fits_, profiles_, *metrics_, events_, planning_, parts_.settings.fit_age,
              parts_.options.compute_time, parts_.options.plan_time, parts_.options.quotas, parts_.clock,
              stopping_}),
      admission_(
          std::make_unique<Admission>(parts_.options, parts_.start_token, router_, tokens_, *metrics_)),
      jobs_({store_, events_, *metrics_, parts.log, parts.program}) {}

Service::~Service() = default;

void Service::stop() {
  stopping_ = true;
  events_.stop();
  jobs_.stop();
}

std::optional<Reply> Service::without_body(const Head& head) {
  auto admission = admission_->admit(head, true);
  if (const auto* refused = std::get_if<Refused>(&admission)) return refuse(*refused);
  if (head.content_length > 0 && head.method == "POST") return {};  // nothing else has a use for a body
  return carry_out(std::move(std::get<Admitted>(admission)), {});
}

Reply Service::with_body(const Head& head, std::string body) {
  auto admission = admission_->admit(head, false);
  if (const auto* refused = std::get_if<Refused>(&admission)) return refuse(*refused);
  return carry_out(std::move(std::get<Admitted>(admission)), std::move(body));
}

tuner::OutOfTime Service::plan_limit() const {
  return out_of_time_at(parts_.clock() + parts_.options.plan_time, parts_.clock, stopping_);
}

Reply Service::compute(const Request& request, const std::function<Reply(const tuner::Watch&)>& what_if) {
  const std::chrono::milliseconds most = parts_.options.compute_time;
  const Permit turn(what_ifs_, most);
  const Permit permit(planning_, most);
  bool gone = false;
  const auto watch = [&, limit = time_limit(most, stopping_)](double fraction) {
    gone = request.client_gone && request.client_gone();
    if (gone) throw Error(ErrorCode::kInterrupted, "nobody waits for the answer any more");
    limit(fraction);
  };
  try {
    return what_if(watch);
  } catch (const Error& error) {
    if (!gone) throw;
    return problem(HttpError{499, "client_gone", error.what()}, request.id);  // for the log and the metrics
  }
}

Reply Service::carry_out(Admitted admitted, std::string body) {
  const InFlight in_flight(*metrics_);
  const auto begin = SteadyClock::now();
  Request& request = admitted.request;
  request.id = new_request_id();
  request.body = std::move(body);
  Reply reply;
  try {
    reply = request.method != "GET" && !request.idempotency_key.empty()
                ? answer_once(*admitted.route, request)
                : answer(*admitted.route, request);
  } catch (const Error& error) {
    reply = problem(error, request.id);
    if (reply.status >= 500)
      parts_.log.say(Level::kError, "request_failed",
                     {{"request", request.id}, {"path", request.path}, {"why", std::string(error.what())}});
  } catch (const HttpRefusal& refusal) {
    reply = problem(refusal.error(), request.id);
  } catch (const std::exception& error) {
    reply = problem(HttpError{500, "internal", "a defect of the service; its log has the request's id"},
                    request.id);
    parts_.log.say(Level::kError, "internal_error",
                   {{"request", request.id}, {"path", request.path}, {"why", std::string(error.what())}});
  }
  if (request.method == "GET" && reply.status == 200 && !reply.stream) {
    const std::string tag = etag_of(reply.body);
    if (!request.if_none_match.empty() && has_tag(request.if_none_match, tag)) {
      reply.status = 304;
      reply.body.clear();
      reply.type.clear();
    }
    reply.headers.emplace_back("ETag", tag);
  }
  const std::chrono::duration<double> time = SteadyClock::now() - begin;
  metrics_->answered(admitted.index, reply.status, time);
  const bool slow = time > parts_.options.slow_request;
  if (slow) ++metrics_->slow_requests;
  if (slow || parts_.options.log_requests)
    parts_.log.say(slow ? Level::kWarning : Level::kInfo, slow ? "slow_request" : "request",
                   {{"request", request.id},
                    {"method", request.method},
                    {"path", request.path},
                    {"status", std::int64_t{reply.status}},
                    {"seconds", time.count()},
                    {"caller", request.caller.name},
                    {"address", request.caller.address}});
  finish(reply, request.id);
  return reply;
}

Reply Service::answer(const Route& route, const Request& request) { return route.handler(request); }

Reply Service::answer_once(const Route& route, const Request& request) {
  const std::string key =
      fmt::format("{}|{} {}|{}", request.caller.token, request.method, request.path, request.idempotency_key);
  const std::string what = Digest().add(request.body).hex();
  const ClaimResult claim = store_.write([&](Store& store) {
    ClaimResult made;
    within_quotas(store, allowance(request), {Held::kAnswers}, [&] {
      made = StoredReplies(store).claim({key, what, request.caller.token}, system_now() - kAbandonedAfter);
    });
    return made;
  });
  switch (claim.claim) {
    case Claim::kPending:
      throw Error(ErrorCode::kConflict,
                  "Idempotency-Key: the first request with this key is still being answered");
    case Claim::kOtherRequest:
      return problem(HttpError{422, "key_reused", "Idempotency-Key: it was used for a different request"},
                     request.id);
    case Claim::kAnswered: {
      ++metrics_->idempotent_repeats;
      Reply reply;
      reply.status = claim.answer->status;
      reply.type = claim.answer->content_type;
      reply.body = claim.answer->body;
      reply.headers.emplace_back("Idempotency-Replayed", "true");
      if (std::string location = location_of(request, reply.status, reply.body); !location.empty())
        reply.headers.emplace_back("Location", std::move(location));
      return reply;
    }
    case Claim::kOurs:
      break;
  }
  const auto release = [&] { store_.write([&](Store& store) { StoredReplies(store).release(key); }); };
  try {
    Reply reply = answer(route, request);
    if (reply.status >= 500) {
      release();
    } else {
      store_.write([&](Store& store) {
        StoredReplies(store).answer(key, {reply.status, reply.type, reply.body});
      });
    }
    return reply;
  } catch (const std::exception&) {
    release();  // a refusal is not kept: the request may be mended and sent again
    throw;
  }
}

Reply Service::refuse(const Refused& refused) {
  const std::string id = new_request_id();
  Reply reply = problem(refused.error, id);
  reply.headers = refused.headers;
  metrics_->answered(refused.index, reply.status, Seconds{});
  finish(reply, id);
  return reply;
}

Reply Service::refuse(int status, std::string_view why) {
  const std::string id = new_request_id();
  const auto detail = [&]() -> std::string {
    if (!why.empty()) return std::string(why);
    switch (status) {
      case 408:
        return "the request did not arrive in time";
      case 413:
        return "the body is too large";
      case 414:
        return "the path is longer than 8192 B";
      case 431:
        return "the headers are too large";
      case 500:
        return "a defect of the service";
      case 503:
        return "there are too many connections";
      default:
        return "not a request that this service understands";
    }
  };
  Reply reply = problem(HttpError{status, status >= 500 ? "unavailable" : "bad_input", detail()}, id);
  metrics_->refused(status);
  finish(reply, id);
  return reply;
}

void Service::finish(Reply& reply, const std::string& request_id) const {
  const auto add = [&reply](const char* name, std::string value) {
    const bool there = std::any_of(reply.headers.begin(), reply.headers.end(),
                                   [&](const auto& header) { return header.first == name; });
    if (!there) reply.headers.emplace_back(name, std::move(value));
  };
  add("X-Request-Id", request_id);
  add("X-Content-Type-Options", "nosniff");
  add("X-Frame-Options", "DENY");
  add("Referrer-Policy", "no-referrer");
  add("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'");
  add("Cross-Origin-Resource-Policy", "same-origin");
  add("Cache-Control", reply.status == 200 || reply.status == 304 ? "private, no-cache" : "no-store");
  // Whatever keeps the processors busy has ended by then.
  if (reply.status == 503) add("Retry-After", std::to_string(whole_seconds(parts_.options.plan_time)));
  if (!parts_.options.tls_certificate.empty()) add("Strict-Transport-Security", "max-age=31536000");
}

std::string Service::metrics_text() const {
  Metrics::Gauges gauges;
  gauges.connections = connections_ ? connections_() : 0;
  gauges.event_streams = events_.followers();
  gauges.jobs_running = jobs_.running();
  gauges.started_seconds = std::chrono::duration<double>(started_.time_since_epoch()).count();
  return metrics_->text(gauges);
}

}  // namespace commtune::api::rest
