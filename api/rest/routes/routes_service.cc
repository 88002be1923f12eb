// Tokens, methods, versions, health, metrics, and this API's description.

#include <nlohmann/json.hpp>

#include "api/actions/tokens.h"
#include "api/rest/http/parameters.h"
#include "api/rest/openapi.h"
#include "api/rest/service.h"
#include "api/version.h"
#include "api/view/methods_json.h"
#include "perfmodel/base/json_reader.h"

namespace commtune::api::rest {
namespace {

using nlohmann::json;

Reply text_reply(std::string body, std::string type = "text/plain") {
  Reply reply;
  reply.type = std::move(type);
  reply.body = std::move(body);
  return reply;
}

Reply live(Service& /*service*/, const Request& /*request*/) { return text_reply("ok\n"); }

Reply ready(Service& service, const Request& request) {
  try {
    service.store().generation();
    return text_reply("ok\n");
  } catch (const Error& error) {
    return problem(HttpError{503, "not_ready", error.what()}, request.id);
  }
}

Reply metrics(Service& service, const Request& /*request*/) {
  return text_reply(service.metrics_text(), "text/plain; version=0.0.4");
}

Reply openapi(Service& /*service*/, const Request& /*request*/) {
  return text_reply(std::string(openapi_text()), "application/yaml");
}

Reply version(Service& service, const Request& request) {
  return json_reply({{"version", kVersion},
                     {"api", "1"},
                     {"schema", Store::schema_version()},
                     {"started", to_iso8601(service.started())},
                     {"authentication", service.needs_token() ? "token" : "operate"},
                     {"scope", to_string(request.caller.scope)}});
}

Reply list_methods(Service& /*service*/, const Request& /*request*/) { return json_reply(methods_to_json()); }

Reply list_tokens(Service& service, const Request& request) {
  const auto store = service.store().reader();
  return page_reply(Tokens(*store).list(page_of(request)),
                    [](const TokenRow& row) { return api::to_json(row); });
}

Reply add_token(Service& service, const Request& request) {
  const json document = request.json();
  const JsonPlace place(document);
  place.expect_keys({"name", "scopes", "expires_seconds"});
  const JsonPlace name = place["name"];
  const JsonPlace scopes = place["scopes"];
  std::vector<std::string> names;
  for (std::size_t i = 0, n = scopes.size(1, 3); i < n; ++i) {
    const JsonPlace scope = scopes[i];
    names.push_back(scope.name());
    if (!scope_of(names.back())) scope.fail("read, plan or operate");
  }
  std::optional<Timestamp> expires;
  if (const auto seconds = place.find("expires_seconds"))
    expires = system_now() +
              std::chrono::duration_cast<Timestamp::duration>(Seconds{seconds->number(1e-3, 315'360'000)});
  const std::string label = name.name();
  const MadeToken made =
      service.store().write([&](Store& store) { return make_token(store, label, names, expires); });
  const auto store = service.store().reader();
  json out = api::to_json(present(Tokens(*store).find(made.id), "token", std::to_string(made.id)));
  out["token"] = made.secret;
  Reply reply = json_reply(out, 201);
  reply.headers.emplace_back("Location", fmt::format("/v1/tokens/{}", made.id));
  return reply;
}

Reply revoke_token(Service& service, const Request& request) {
  const RowId id = row_id_of(request, "token");
  service.store().write([&](Store& store) { Tokens(store).revoke(id); });
  const auto store = service.store().reader();
  return json_reply(api::to_json(present(Tokens(*store).find(id), "token", std::to_string(id))));
}

}  // namespace

void add_service_routes(Router& router, Service& service) {
  const auto bind = [&service](auto* handler) {
    return [&service, handler](const Request& request) { return handler(service, request); };
  };
  router.add({"GET", "/livez", Scope::kNone, bind(live)});
  router.add({"GET", "/readyz", Scope::kNone, bind(ready)});
  router.add({"GET", "/healthz", Scope::kNone, bind(ready)});
  router.add({"GET", "/openapi.yaml", Scope::kNone, bind(openapi)});
  router.add({"GET", "/metrics", Scope::kRead, bind(metrics)});
  router.add({"GET", "/v1/version", Scope::kRead, bind(version)});
  router.add({"GET", "/v1/methods", Scope::kRead, bind(list_methods)});
  router.add({"GET", "/v1/tokens", Scope::kOperate, bind(list_tokens)});
  router.add({"POST", "/v1/tokens", Scope::kOperate, bind(add_token), false});
  router.add({"DELETE", "/v1/tokens/{id}", Scope::kOperate, bind(revoke_token)});
}

}  // namespace commtune::api::rest
