#pragma once
// The service: what its routes share, and what happens to a request from its head to its answer.

#include <atomic>
#include <functional>
#include <memory>
#include <semaphore>
#include <string>

#include "api/actions/context.h"
#include "api/rest/admission.h"
#include "api/rest/caches.h"
#include "api/rest/events.h"
#include "api/rest/fair_semaphore.h"
#include "api/rest/http/listener.h"
#include "api/rest/http/options.h"
#include "api/rest/http/router.h"
#include "api/rest/job_runner.h"
#include "api/rest/log.h"
#include "api/rest/metrics.h"
#include "api/rest/plan_service.h"
#include "api/rest/quota.h"
#include "api/rest/store_access.h"

namespace commtune::api::rest {

/// What the service is made of; all of it outlives the service.
struct ServiceParts {
  const ServeOptions& options;
  const Settings& settings;
  const Environment& environment;
  std::filesystem::path program;  ///< `tune`, which jobs are run with
  Log& log;
  std::string start_token{};  ///< the secret of this start, which allows all; empty: there is none
  Clock clock = std::chrono::steady_clock::now;  ///< that plans' time limits go by
};

class Service : public Application {
 public:
  /// store  to be written to; the service takes it over
  Service(const ServiceParts& parts, Store store);
  ~Service() override;
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  std::optional<Reply> without_body(const Head& head) override;
  Reply with_body(const Head& head, std::string body) override;
  Reply refuse(int status, std::string_view why) override;

  /// Ends event streams and running jobs (which are marked as interrupted).
  void stop();
  /// Where the number of open connections can be read, once there is a listener.
  void watch_connections(std::function<int()> connections) { connections_ = std::move(connections); }

  const Router& routes() const { return router_; }

  // What routes use.
  const ServiceParts& parts() const { return parts_; }
  StoreAccess& store() { return store_; }
  FitCache& fits() { return fits_; }
  ProfileCache& profiles() { return profiles_; }
  PlanService& plans() { return plans_; }
  JobRunner& jobs() { return jobs_; }
  Events& events() { return events_; }
  Metrics& metrics() { return *metrics_; }
  Timestamp started() const { return started_; }
  Allowance allowance(const Request& request) const { return {parts_.options.quotas, request.caller}; }
  /// For work on one plan that begins now.
  tuner::OutOfTime plan_limit() const;
  bool needs_token() const { return admission_->needs_token(); }
  std::string metrics_text() const;

  /// Carries out a what-if, which may keep a processor busy for long: within the time limit of its watch, and
  /// never on all processors at a time, so that schedulers get their plans meanwhile. It ends early when the
  /// client does not wait for it any more.
  /// Throws Error{kUnavailable} when its turn does not come.
  Reply compute(const Request& request, const std::function<Reply(const tuner::Watch&)>& what_if);

 private:
  Reply carry_out(Admitted admitted, std::string body);
  Reply answer(const Route& route, const Request& request);
  /// With an Idempotency-Key: the kept answer, or a new one that is then kept.
  Reply answer_once(const Route& route, const Request& request);
  Reply refuse(const Refused& refused);
  void finish(Reply& reply, const std::string& request_id) const;

  const ServiceParts parts_;
  const Timestamp started_;
  StoreAccess store_;
  Router router_;
  std::unique_ptr<Metrics> metrics_;
  FairSemaphore planning_;  // questions worked on
  FairSemaphore what_ifs_;  // of them, curves and maps
  std::atomic<bool> stopping_ = false;
  FitCache fits_;
  ProfileCache profiles_;
  TokenCache tokens_;
  Events events_;
  PlanService plans_;
  std::unique_ptr<Admission> admission_;
  std::function<int()> connections_;
  JobRunner jobs_;  // last: its threads use what is above
};

/// The routes of openapi.yaml, each file its own.
void add_cluster_routes(Router& router, Service& service);
void add_profile_routes(Router& router, Service& service);
void add_plan_routes(Router& router, Service& service);
void add_run_routes(Router& router, Service& service);
void add_what_if_routes(Router& router, Service& service);
void add_job_routes(Router& router, Service& service);
void add_service_routes(Router& router, Service& service);
void add_dashboard_routes(Router& router);

}  // namespace commtune::api::rest
