// /v1/jobs and /v1/events.

#include <nlohmann/json.hpp>

#include "api/rest/http/parameters.h"
#include "api/rest/service.h"

namespace commtune::api::rest {
namespace {

using nlohmann::json;

Reply list_jobs(Service& service, const Request& request) {
  const auto store = service.store().reader();
  return page_reply(Jobs(*store).list(page_of(request)), [](const JobRow& row) { return to_json(row); });
}

Reply get_job(Service& service, const Request& request) {
  const auto store = service.store().reader();
  return json_reply(
      to_json(present(Jobs(*store).find(row_id_of(request, "job")), "job", request.arguments.at(0))));
}

Reply cancel_job(Service& service, const Request& request) {
  return accepted(service.jobs().cancel(row_id_of(request, "job")));
}

Reply resume_job(Service& service, const Request& request) {
  return accepted(service.jobs().resume(row_id_of(request, "job"), service.allowance(request)));
}

Reply get_log(Service& service, const Request& request) {
  const auto store = service.store().reader();
  const RowId id = row_id_of(request, "job");
  present(Jobs(*store).find(id), "job", request.arguments.at(0));
  return page_reply(Jobs(*store).log(id, page_of(request)), [](const JobLogLine& line) {
    return json{{"id", line.id}, {"at", to_iso8601(line.at)}, {"text", line.text}};
  });
}

Reply follow_events(Service& service, const Request& /*request*/) { return service.events().follow(); }

}  // namespace

void add_job_routes(Router& router, Service& service) {
  const auto bind = [&service](auto* handler) {
    return [&service, handler](const Request& request) { return handler(service, request); };
  };
  router.add({"GET", "/v1/jobs", Scope::kRead, bind(list_jobs)});
  router.add({"GET", "/v1/jobs/{id}", Scope::kRead, bind(get_job)});
  router.add({"DELETE", "/v1/jobs/{id}", Scope::kOperate, bind(cancel_job)});
  router.add({"POST", "/v1/jobs/{id}/resume", Scope::kOperate, bind(resume_job)});
  router.add({"GET", "/v1/jobs/{id}/log", Scope::kRead, bind(get_log)});
  router.add({"GET", "/v1/events", Scope::kRead, bind(follow_events)});
}

}  // namespace commtune::api::rest
