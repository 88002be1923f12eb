// /v1/profiles.

#include <nlohmann/json.hpp>

#include "api/rest/parameters.h"
#include "api/rest/service.h"
#include "api/view/row_json.h"
#include "perfmodel/shipped_profiles.h"

namespace commtune::api::rest {
namespace {

using nlohmann::json;

ProfileSummary summary_of(const Profile& profile, Timestamp since) {
  ProfileSummary row;
  row.digest = digest(profile);
  row.layout = layout_digest(profile);
  row.model = profile.model;
  row.batch = profile.batch;
  row.layers = static_cast<int>(profile.layers.size());
  row.tensors = static_cast<int>(profile.tensor_count());
  row.gradient_bytes = profile.gradient_bytes();
  row.compute = profile.forward() + profile.backward() + profile.update();
  row.how = profile.origin.how;
  row.origin.created = since;
  return row;
}

Reply list_profiles(Service& service, const Request& request) {
  const auto store = service.store().reader();
  const PageOf<ProfileSummary> page = store->profiles(page_of(request));
  json out{{"shipped", json::array()},
           {"rows", json::array()},
           {"next", page.next ? json(*page.next) : json(nullptr)}};
  for (const std::string& name : shipped_profile_names())
    out["shipped"].push_back(
        api::to_json(summary_of(service.profiles().find(name)->profile, service.started())));
  for (const ProfileSummary& row : page.rows) out["rows"].push_back(api::to_json(row));
  return json_reply(out);
}

Reply get_profile(Service& service, const Request& request) {
  const ProfilePointer known = service.profiles().find(request.arguments.at(0));
  const auto stored = service.store().reader()->find_profile(std::string_view(known->digest));
  json out = api::to_json(stored ? static_cast<const ProfileSummary&>(*stored)
                                 : summary_of(known->profile, service.started()));
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
