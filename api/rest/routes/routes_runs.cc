// /v1/runs.

#include <cmath>
#include <nlohmann/json.hpp>

#include "api/actions/run.h"
#include "api/rest/http/parameters.h"
#include "api/rest/service.h"
#include "api/view/row_json.h"
#include "perfmodel/base/json_reader.h"

namespace commtune::api::rest {
namespace {

using nlohmann::json;

Reply list_runs(Service& service, const Request& request) {
  const auto store = service.store().reader();
  const RowId plan = request.integer("plan", 1, (1LL << 53) - 1, 0);
  const auto cluster = cluster_filter(request, *store);
  if (plan > 0 && cluster) throw Error(ErrorCode::kBadInput, "parameter cluster : give it or plan, not both");
  const Page page = page_of(request);
  return page_reply(cluster ? store->runs_on(*cluster, page)
                            : store->runs(plan > 0 ? std::optional(plan) : std::nullopt, page),
                    [](const RunSummary& row) { return api::to_json(row); });
}

Reply get_run(Service& service, const Request& request) {
  return json_reply(api::to_json(present(service.store().reader()->find_run(row_id_of(request, "run")), "run",
                                         request.arguments.at(0))));
}

std::vector<Host> read_hosts(const JsonPlace& place) {
  std::vector<Host> hosts;
  for (std::size_t i = 0, n = place.size(0, 4096); i < n; ++i) {
    const JsonPlace host = place[i];
    host.expect_keys({"name", "slots"});
    const JsonPlace name = host["name"];
    const JsonPlace slots = host["slots"];
    hosts.push_back({name.name(), static_cast<int>(slots.integer(1, 65'536))});
  }
  return hosts;
}

RunResult read_result(const JsonPlace& place) {
  static constexpr std::pair<std::string_view, WorkState> kStates[] = {
      {"complete", WorkState::kComplete},
      {"interrupted", WorkState::kInterrupted},
      {"failed", WorkState::kFailed}};
  WorkState state = WorkState::kComplete;
  std::string failure;
  std::vector<double> measured;
  if (const auto named = place.find("state")) state = read_enum(*named, kStates);
  if (const auto error = place.find("error")) failure = error->text();
  if (const auto seconds = place.find("iteration_seconds")) {
    for (std::size_t i = 0, n = seconds->size(0, 100'000); i < n; ++i) {
      const JsonPlace each = (*seconds)[i];
      measured.push_back(each.number(0, 1e6));
    }
  }
  return run_result(state, std::move(measured), std::move(failure));
}

/// What ran: commtune's replay, or a training program.
std::string workload_of(const JsonPlace& place) {
  std::string name = place.name();
  if (name != "replay" && name != "training") place.fail("replay or training");
  return name;
}

Reply add_run(Service& service, const Request& request) {
  const json document = request.json();
  const JsonPlace place(document);
  place.expect_keys(
      {"plan", "iteration_seconds", "state", "error", "hosts", "versions", "settings", "workload"});
  NewRun run;
  const JsonPlace plan_id = place["plan"];
  run.plan = static_cast<RowId>(plan_id.integer(1, (std::uint64_t{1} << 53U) - 1));
  if (const auto hosts = place.find("hosts")) run.hosts = read_hosts(*hosts);
  if (const auto versions = place.find("versions")) {
    for (const auto& [name, value] : versions->object().items()) {
      const JsonPlace each = (*versions)[name];
      run.versions[name] = each.text();
    }
  }
  run.settings = {{"reported_by", request.caller.name}};
  // A token that may only plan can be one that a whole site reads.
  run.attested = request.caller.scope >= Scope::kOperate;
  run.token = request.caller.token;
  if (const auto workload = place.find("workload")) run.settings["workload"] = workload_of(*workload);
  if (const auto settings = place.find("settings")) run.settings["settings"] = settings->object();
  const RunResult result = read_result(place);
  RowId id = 0;
  service.store().write([&](Store& store) {
    const auto known = store.find_plan(run.plan);
    if (!known) throw Error(ErrorCode::kNotFound, fmt::format("plan: there is no plan {}", run.plan));
    NewRun placed = run;
    placed.cluster = known->cluster;
    within_quotas(store, service.allowance(request), {Held::kRuns},
                  [&] { id = store.add_run(placed, result); });
  });
  const RunRow row = present(service.store().reader()->find_run(id), "run", std::to_string(id));
  if (row.attested && row.predicted.count() > 0 && row.median.count() > 0)
    service.metrics().prediction_error.observe(std::abs(row.predicted / row.median - 1));
  service.events().publish("run", {{"id", id}});
  Reply reply = json_reply(api::to_json(row), 201);
  reply.headers.emplace_back("Location", fmt::format("/v1/runs/{}", id));
  return reply;
}

}  // namespace

void add_run_routes(Router& router, Service& service) {
  const auto bind = [&service](auto* handler) {
    return [&service, handler](const Request& request) { return handler(service, request); };
  };
  router.add({"GET", "/v1/runs", Scope::kRead, bind(list_runs)});
  router.add({"POST", "/v1/runs", Scope::kPlan, bind(add_run)});
  router.add({"GET", "/v1/runs/{id}", Scope::kRead, bind(get_run)});
}

}  // namespace commtune::api::rest
