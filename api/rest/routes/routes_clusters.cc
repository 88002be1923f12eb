// /v1/clusters and /v1/probes.

#include <nlohmann/json.hpp>

#include "api/actions/probe.h"
#include "api/options.h"
#include "api/rest/http/parameters.h"
#include "api/rest/service.h"
#include "api/view/curves.h"
#include "api/view/row_json.h"
#include "perfmodel/base/json_reader.h"

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

Reply start_probe(Service& service, const Request& request) {
  NewJob job;
  job.kind = "probe";
  job.request = request.json();
  check_request(JsonPlace(job.request), knob::kProbeRequest);
  if (const std::string over = job.request.value("transport", std::string()); !over.empty())
    check_probed_over(over);
  if (const auto models = job.request.find("for"); models != job.request.end() && !models->is_null()) {
    for (json& model : *models) model = service.profiles().command_name(model.get<std::string>());
  }
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
