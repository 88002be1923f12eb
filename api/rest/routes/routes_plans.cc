// /v1/plans and /v1/prioritize.

#include <nlohmann/json.hpp>

#include "api/actions/run.h"
#include "api/actions/verify.h"
#include "api/export/export.h"
#include "api/options.h"
#include "api/question/case.h"
#include "api/question/plan_lookup.h"
#include "api/rest/http/parameters.h"
#include "api/rest/service.h"
#include "api/view/curves.h"
#include "api/view/doubtful.h"
#include "api/view/row_json.h"
#include "api/view/timeline.h"
#include "perfmodel/base/json_reader.h"
#include "tuner/nccl_tunings.h"

namespace commtune::api::rest {
namespace {

using nlohmann::json;

PlanView view_of(Service& service, const Request& request) {
  const auto store = service.store().reader();
  const PlanRow row = find_stored_plan(*store, request.arguments.at(0));
  const std::string method(request.parameter("method"));
  try {
    return view_plan(*store, row, method, service.plan_limit());
  } catch (const Error& error) {
    if (method.empty() || error.code() == ErrorCode::kStorage) throw;
    const ErrorCode code = error.code() == ErrorCode::kBadInput ? ErrorCode::kNotFound : error.code();
    throw Error(code, fmt::format("parameter method : {}", error.what()));
  }
}

Reply plan_reply(PlanService::Said said) {
  Reply reply;
  reply.status = said.created ? 201 : 200;
  reply.body = std::move(said.text);
  if (said.created) reply.headers.emplace_back("Location", fmt::format("/v1/plans/{}", said.plan));
  return reply;
}

/// What the command that carries out a question calls its model: never the name of a file. A whole profile is
/// stored first.
std::string command_model(Service& service, const Request& request, const Question& question) {
  if (!question.profile) return service.profiles().command_name(question.model);
  service.store().write([&](Store& store) {
    within_quotas(store, service.allowance(request), {Held::kProfiles},
                  [&] { store.put_profile(*question.profile, request.caller.token); });
  });
  return digest(*question.profile);
}

/// Refuses what the job would fail of.
void check_job(Service& service, const Question& question, const ClusterRow& cluster) {
  const Fitted fitted = service.fits()
                            .find_fitted(cluster.name)
                            .fitted(question.cluster.transport, fit_age(service.parts().settings));
  const ProfilePointer profile = question.profile ? nullptr : service.profiles().find(question.model);
  const Case made = make_case(question, question.allocation, profile ? profile->profile : *question.profile,
                              *fitted.cluster);
  check_size(made);
  Placing placing;
  placing.hosts.hosts = cluster.hosts;
  const int ranks = ranks_of_job(made.options, made.cluster);
  if (question.verify) check_verification(*question.verify, placing, ranks);
  if (const int offered = known_ranks(placing.hosts); question.check && offered < ranks)
    throw Error(ErrorCode::kBadInput,
                fmt::format("check: the job has {} ranks, the cluster's hosts offer {}", ranks, offered));
}

/// Plans of the question are run, which takes its time: a job's work.
Reply run_question(Service& service, const Request& request, const Question& question) {
  if (auto refused = refuse_below(Scope::kOperate, request, service.metrics())) return std::move(*refused);
  if (question.cluster.given)
    throw Error(ErrorCode::kBadInput, "cluster: plans are run on a registered one only; name it");
  const std::string& name = question.cluster.name;
  const ClusterRow cluster =
      present(service.store().reader()->find_cluster(std::string_view(name)), "cluster", name);
  check_job(service, question, cluster);
  NewJob job;
  job.kind = "tune";
  job.cluster = cluster.id;
  job.request = tune_job_request(question, command_model(service, request, question));
  return accepted(service.jobs().enqueue(job, service.allowance(request)));
}

Reply make_plan(Service& service, const Request& request) {
  if (auto said = service.plans().known(request.body)) return plan_reply(std::move(*said));
  const Question question = question_from_json(parse_json(request.body, "request body"));
  if (question.asks_for_runs()) return run_question(service, request, question);
  return plan_reply(service.plans().answer(request.body, question, request.caller));
}

Reply list_plans(Service& service, const Request& request) {
  const auto store = service.store().reader();
  return page_reply(store->plans(cluster_filter(request, *store), page_of(request)),
                    [](const PlanSummary& row) { return api::to_json(row); });
}

Reply get_plan(Service& service, const Request& request) {
  const auto store = service.store().reader();
  return json_reply(to_json_with_doubt(*store, find_stored_plan(*store, request.arguments.at(0))));
}

Reply get_timeline(Service& service, const Request& request) {
  const std::string_view format = request.parameter("format");
  if (!format.empty() && format != "compact" && format != "chrome")
    throw Error(ErrorCode::kBadInput,
                fmt::format("parameter format = \"{}\": expected compact or chrome", format.substr(0, 64)));
  const PlanView view = view_of(service, request);
  return json_reply(format == "chrome" ? timeline_to_trace(view) : timeline_to_json(view));
}

Reply get_messages(Service& service, const Request& request) {
  return json_reply(messages_to_json(view_of(service, request)));
}

Reply export_one(Service& service, const Request& request) {
  const PlanView view = view_of(service, request);
  const ExportPlace place{prediction_beside(view), tuner::nccl_tunings(view.cluster)};
  json out = to_json(export_plan(request.arguments.at(1), view.plan, view.profile, place));
  out["plan"] = view.id ? json(*view.id) : json(nullptr);
  out["method"] = view.plan.method;
  return json_reply(out);
}

json model_name(Service& service, const PlanSummary& plan, const json& model) {
  if (model.is_null()) return model;
  const auto name = model.get<std::string>();
  const ProfilePointer known = service.profiles().find(name);
  if (const std::string layout = layout_digest(known->profile); layout != plan.layout)
    throw Error(ErrorCode::kBadInput, fmt::format("model: its layout is {}, must be that of plan {}: {}",
                                                  layout, plan.id, plan.layout));
  return service.profiles().command_name(name);
}

Reply run_plan(Service& service, const Request& request) {
  NewJob job;
  job.kind = "run";
  job.request = request.json();
  check_request(JsonPlace(job.request), knob::kRunRequest);
  const PlanRow plan = find_stored_plan(*service.store().reader(), request.arguments.at(0));
  if (!plan.cluster)
    throw Error(
        ErrorCode::kConflict,
        fmt::format("plan {} was made for no registered cluster, so there is nowhere to run it", plan.id));
  job.request["plan"] = plan.id;
  if (job.request.contains("model"))
    job.request["model"] = model_name(service, plan, job.request.at("model"));
  job.cluster = plan.cluster;
  return accepted(service.jobs().enqueue(job, service.allowance(request)));
}

std::string node_name(const JsonPlace& node, const json& value) {
  if (value.is_string()) return node.name();
  if (const auto name = node.find("Name")) return name->name();
  const JsonPlace name = node["name"];
  return name.name();
}

Reply prioritize(Service& service, const Request& request) {
  constexpr double kUnknown = 50;
  const json document = request.json();
  const JsonPlace place(document);
  const JsonPlace nodes = place["nodes"];
  const std::string cluster(request.parameter("cluster"));
  std::map<std::string, double> known;
  {
    const auto store = service.store().reader();
    if (const auto row = store->find_cluster(std::string_view(cluster)))
      known = probes::host_scores(link_report(*store, *row));
  }
  json scores = json::object();
  for (std::size_t i = 0, n = nodes.size(0, 4096); i < n; ++i) {
    const JsonPlace node = nodes[i];
    const std::string name = node_name(node, document.at("nodes").at(i));
    const auto found = known.find(name);
    scores[name] = found == known.end() ? kUnknown : found->second;
  }
  return json_reply({{"nodeScore", std::move(scores)}, {"errorMessage", ""}});
}

}  // namespace

void add_plan_routes(Router& router, Service& service) {
  const auto bind = [&service](auto* handler) {
    return [&service, handler](const Request& request) { return handler(service, request); };
  };
  router.add({"POST", "/v1/plans", Scope::kPlan, bind(make_plan)});
  router.add({"GET", "/v1/plans", Scope::kRead, bind(list_plans)});
  router.add({"GET", "/v1/plans/{id}", Scope::kRead, bind(get_plan)});
  router.add({"GET", "/v1/plans/{id}/timeline", Scope::kRead, bind(get_timeline)});
  router.add({"GET", "/v1/plans/{id}/messages", Scope::kRead, bind(get_messages)});
  router.add({"GET", "/v1/plans/{id}/exports/{target}", Scope::kRead, bind(export_one)});
  router.add({"POST", "/v1/plans/{id}/runs", Scope::kOperate, bind(run_plan)});
  router.add({"POST", "/v1/prioritize", Scope::kRead, bind(prioritize)});
}

}  // namespace commtune::api::rest
