// /v1/profiles.

#include <nlohmann/json.hpp>

#include "api/question/models.h"
#include "api/rest/http/parameters.h"
#include "api/rest/service.h"
#include "api/view/row_json.h"
#include "perfmodel/shipped_profiles.h"

namespace commtune::api::rest {
namespace {

using nlohmann::json;

/// A shipped profile has been there since the service started.
ProfileSummary summary_since(const Profile& profile, Timestamp since) {
  ProfileSummary row = summary_of(profile);
  row.origin.created = since;
  return row;
}

Reply list_profiles(Service& service, const Request& request) {
  const auto store = service.store().reader();
  std::vector<ProfileSummary> shipped;
  for (const std::string& name : shipped_profile_names())
    shipped.push_back(summary_since(service.profiles().find(name)->profile, service.started()));
  return json_reply(profiles_to_json(shipped, store->profiles(page_of(request))));
}

Reply get_profile(Service& service, const Request& request) {
  const ProfilePointer known = service.profiles().find(request.arguments.at(0));
  const auto stored = service.store().reader()->find_profile(std::string_view(known->digest));
  json out = api::to_json(stored ? static_cast<const ProfileSummary&>(*stored)
                                 : summary_since(known->profile, service.started()));
  out["profile"] = commtune::to_json(known->profile);
  return json_reply(out);
}

Reply add_profile(Service& service, const Request& request) {
  const Profile profile = profile_from_json(request.json());
  RowId id = 0;
  service.store().write([&](Store& store) {
    within_quotas(store, service.allowance(request), {Held::kProfiles},
                  [&] { id = store.put_profile(profile, request.caller.token); });
  });
  const auto stored = present(service.store().reader()->find_profile(id), "profile", std::to_string(id));
  Reply reply = json_reply(api::to_json(static_cast<const ProfileSummary&>(stored)), 201);
  reply.headers.emplace_back("Location", fmt::format("/v1/profiles/{}", id));
  return reply;
}

}  // namespace

void add_profile_routes(Router& router, Service& service) {
  const auto bind = [&service](auto* handler) {
    return [&service, handler](const Request& request) { return handler(service, request); };
  };
  router.add({"GET", "/v1/profiles", Scope::kRead, bind(list_profiles)});
  router.add({"POST", "/v1/profiles", Scope::kPlan, bind(add_profile)});
  router.add({"GET", "/v1/profiles/{id}", Scope::kRead, bind(get_profile)});
}

}  // namespace commtune::api::rest
