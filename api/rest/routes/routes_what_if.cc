// /v1/scaling, /v1/phase-map and /v1/servers.

#include <nlohmann/json.hpp>

#include "api/actions/whatif.h"
#include "api/question/case.h"
#include "api/question/question_fields.h"
#include "api/rest/fair_semaphore.h"
#include "api/rest/http/parameters.h"
#include "api/rest/service.h"
#include "api/series.h"
#include "api/view/whatif_json.h"
#include "tuner/whatif.h"

namespace commtune::api::rest {
namespace {

using nlohmann::json;

/// The question that the query asks, with everything looked up and its assumptions applied.
WhatIfCase case_of(Service& service, const Request& request) {
  const std::string model(request.parameter("model")), cluster(request.parameter("cluster"));
  if (model.empty()) throw Error(ErrorCode::kBadInput, "parameter model : missing");
  if (cluster.empty()) throw Error(ErrorCode::kBadInput, "parameter cluster : missing");
  const ProfilePointer profile = service.profiles().find(model);
  const FitCache::Known known = service.fits().find_fitted(cluster);
  Question question;
  QueryReader query(request);
  visit_knob(query, knob::kTransport, question.cluster.transport);
  visit_fields(query, question.overrides);
  visit_knob(query, knob::kSeed, question.seed);
  visit_knob(query, knob::kDedicatedServers, question.allocation.limits.dedicated_servers);
  visit_knob(query, knob::kHashed, question.allocation.limits.hashed);
  question.draws = 0;
  Fitted fitted = known.fitted(question.cluster.transport, fit_age(service.parts().settings));
  Case made = make_case(question, question.allocation, profile->profile, *fitted.cluster);
  check_size(made);
  return {std::move(made.profile), std::move(made.cluster), made.options, cluster, fitted.fit, {},
          std::move(fitted.marks)};
}

/// "2,4,8" as numbers within the limits.
std::vector<double> numbers(const Request& request, const std::string& name, std::size_t most, double least,
                            double largest, std::vector<double> otherwise) {
  const std::string_view text = request.parameter(name);
  if (text.empty()) return otherwise;
  std::vector<double> out;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    double value = 0;
    const auto [last, error] = std::from_chars(text.data() + at, text.data() + end, value);
    if (error != std::errc{} || last != text.data() + end || !(value >= least && value <= largest) ||
        out.size() == most)
      throw Error(
          ErrorCode::kBadInput,
          fmt::format("parameter {} = \"{}\": expected at most {} numbers from {} to {}, separated by commas",
                      name, text.substr(0, 64), most, least, largest));
    out.push_back(value);
    at = end + 1;
  }
  return out;
}

/// Every point of it is planned under this watch: it is looked at between two points, and within each.
void put_under(tuner::Watch watch, WhatIfCase& given) {
  given.watch = std::move(watch);
  given.options.out_of_time = within_points(given.watch);
}

Reply get_scaling(Service& service, const Request& request) {
  WhatIfCase given = case_of(service, request);
  given.options.draws = tuner::TuneOptions{}.draws;
  QueryReader query(request);
  visit_knob(query, knob::kDraws, given.options.draws);
  check_draws(given.options.draws, given.profile);
  const int most = static_cast<int>(request.integer("most", 1, 4096, 64));
  return service.compute(request, [&](const tuner::Watch& watch) {
    put_under(watch, given);
    return json_reply(to_json(scale(given, count_series(fmt::format("1..{}", most)))));
  });
}

Reply get_phase_map(Service& service, const Request& request) {
  WhatIfCase given = case_of(service, request);
  MapAxes axes;
  for (const double value :
       numbers(request, "workers", 16, knob::kWorkers.least, knob::kWorkers.most, {2, 4, 8, 16, 32}))
    axes.workers.push_back(static_cast<int>(value));
  axes.per_byte_factors.clear();
  constexpr Knob scales = knob::kBandwidthScale;
  for (const double scale :
       numbers(request, "bandwidth_scales", 16, scales.least, scales.most, {0.1, 0.3, 1, 3, 10}))
    axes.per_byte_factors.push_back(1 / scale);
  axes.latency_factors = numbers(request, "latency_scales", 4, scales.least, scales.most, {1});
  return service.compute(request, [&](const tuner::Watch& watch) {
    put_under(watch, given);
    json out = to_json(map(given, axes));
    out["flips"] = api::to_json(tuner::flip_points(given.profile, given.cluster, given.options, given.watch));
    return json_reply(out);
  });
}

Reply get_servers(Service& service, const Request& request) {
  WhatIfCase given = case_of(service, request);
  given.options.workers = given.cluster.ranks();
  QueryReader query(request);
  visit_knob(query, knob::kWorkers, given.options.workers);
  const std::string_view placement = request.parameter("placement");
  if (!placement.empty() && placement != "colocated" && placement != "dedicated")
    throw Error(ErrorCode::kBadInput,
                fmt::format("parameter placement = \"{}\": expected colocated or dedicated",
                            placement.substr(0, 64)));
  const Placement where = placement == "dedicated" ? Placement::kDedicated : Placement::kColocated;
  const int most = static_cast<int>(request.integer("most", 1, 4096, given.options.workers));
  if (where == Placement::kColocated && most > given.options.workers)
    throw Error(ErrorCode::kBadInput,
                fmt::format("parameter most = {}: at most {} colocated servers, as many as workers", most,
                            given.options.workers));
  return service.compute(request, [&](const tuner::Watch& watch) {
    put_under(watch, given);
    return json_reply(to_json(servers(given, count_series(fmt::format("1..{}", most)), where)));
  });
}

}  // namespace

void add_what_if_routes(Router& router, Service& service) {
  const auto bind = [&service](auto* handler) {
    return [&service, handler](const Request& request) { return handler(service, request); };
  };
  router.add({"GET", "/v1/scaling", Scope::kPlan, bind(get_scaling)});
  router.add({"GET", "/v1/phase-map", Scope::kPlan, bind(get_phase_map)});
  router.add({"GET", "/v1/servers", Scope::kPlan, bind(get_servers)});
}

}  // namespace commtune::api::rest
