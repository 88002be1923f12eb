// /v1/clusters and /v1/probes.

#include <nlohmann/json.hpp>

#include "api/rest/parameters.h"
#include "api/rest/service.h"
#include "api/view/curves.h"
#include "api/view/row_json.h"
#include "perfmodel/json_reader.h"

namespace commtune::api::rest {
namespace {

using nlohmann::json;

ClusterRow named_cluster(const Store& store, const Request& request) {
  const std::string& name = request.arguments.at(0);
  return present(store.find_cluster(std::string_view(name)), "cluster", name);
}

Reply list_clusters(Service& service, const Request& request) {
  const auto store = service.store().reader();
  const FitAge age = fit_age(service.parts().settings);
  return page_reply(store->clusters(page_of(request)), [&](const ClusterRow& row) {
    json out = api::to_json(row);
    const PageOf<FitSummary> newest = store->fits(row.id, Page{1, 0});
    const bool fitted = !newest.rows.empty();
    out["current_fit"] = fitted ? json(newest.rows.front().id) : json(nullptr);
    out["stale"] = fitted && is_stale(newest.rows.front(), age);
    return out;
  });
}

Reply get_cluster(Service& service, const Request& request) {
  const auto store = service.store().reader();
  const ClusterRow cluster = named_cluster(*store, request);
  return json_reply(cluster_to_json(*store, cluster, fit_age(service.parts().settings), Page{}));
}

Reply get_fits(Service& service, const Request& request) {
  const auto store = service.store().reader();
  const ClusterRow cluster = named_cluster(*store, request);
  CurveRequest wanted;
  wanted.points = static_cast<int>(request.integer("points", 2, 2000, wanted.points));
  wanted.subject = request.parameter("subject");
  wanted.age = fit_age(service.parts().settings);
  const RowId id = request.integer("fit", 1, (1LL << 53) - 1, 0);
  auto fit = id > 0 ? store->find_fit(id) : store->current_fit(cluster.id);
  if (!fit || fit->cluster_name != cluster.name)
    throw Error(ErrorCode::kNotFound, fmt::format("cluster \"{}\": has no such fit", cluster.name));
  return json_reply(fit_curves_to_json(*store, *fit, wanted));
}

Reply get_links(Service& service, const Request& request) {
  const auto store = service.store().reader();
  return json_reply(links_to_json(*store, named_cluster(*store, request)));
}

/// ProbeRequest, checked and as it was.
json checked_probe_request(const json& document) {
  const JsonPlace place(document);
  place.expect_keys(
      {"budget_seconds", "first_bytes", "last_bytes", "traffic_bytes", "servers", "fresh", "shared_hosts"});
  if (const auto budget = place.find("budget_seconds")) budget->number(1e-3, 86'400);
  for (const char* key : {"first_bytes", "last_bytes"})
    if (const auto size = place.find(key)) size->integer(1, std::uint64_t{1} << 40U);
  if (const auto traffic = place.find("traffic_bytes")) traffic->integer(1, std::uint64_t{1} << 50U);
  if (const auto servers = place.find("servers")) {
    for (std::size_t i = 0, n = servers->size(1, 16); i < n; ++i) {
      const JsonPlace each = (*servers)[i];
      each.integer(1, 65'536);
    }
  }
  for (const char* key : {"fresh", "shared_hosts"})
    if (const auto flag = place.find(key); flag && !document.at(key).is_boolean())
      flag->fail("true or false");
  return document;
}

Reply start_probe(Service& service, const Request& request) {
  NewJob job;
  job.kind = "probe";
  job.request = checked_probe_request(request.json());
  job.cluster = named_cluster(*service.store().reader(), request).id;
  return accepted(service.jobs().enqueue(job, service.allowance(request)));
}

Reply list_probes(Service& service, const Request& request) {
  const auto store = service.store().reader();
  return page_reply(store->sessions(cluster_filter(request, *store), page_of(request)),
                    [](const SessionRow& row) { return api::to_json(row); });
}

}  // namespace

void add_cluster_routes(Router& router, Service& service) {
  const auto bind = [&service](auto* handler) {
    return [&service, handler](const Request& request) { return handler(service, request); };
  };
  router.add({"GET", "/v1/clusters", Scope::kRead, bind(list_clusters)});
  router.add({"GET", "/v1/clusters/{name}", Scope::kRead, bind(get_cluster)});
  router.add({"GET", "/v1/clusters/{name}/fits", Scope::kRead, bind(get_fits)});
  router.add({"GET", "/v1/clusters/{name}/links", Scope::kRead, bind(get_links)});
  router.add({"POST", "/v1/clusters/{name}/probes", Scope::kOperate, bind(start_probe)});
  router.add({"GET", "/v1/probes", Scope::kRead, bind(list_probes)});
}

}  // namespace commtune::api::rest
