// /v1/scaling, /v1/phase-map and /v1/servers.

#include <nlohmann/json.hpp>

#include "api/actions/whatif.h"
#include "api/rest/parameters.h"
#include "api/rest/service.h"
#include "tuner/whatif.h"

namespace commtune::api::rest {
namespace {

using nlohmann::json;

constexpr double kSmallestScale = 1e-3, kLargestScale = 1e3;

struct Asked {
  ProfilePointer profile;
  FitPointer fit;
};

Asked look_up(Service& service, const Request& request) {
  const std::string model(request.parameter("model")), cluster(request.parameter("cluster"));
  if (model.empty()) throw Error(ErrorCode::kBadInput, "parameter model : missing");
  if (cluster.empty()) throw Error(ErrorCode::kBadInput, "parameter cluster : missing");
  Asked asked{service.profiles().find(model), service.fits().find(cluster).fit};
  if (!asked.fit)
    throw Error(ErrorCode::kNotFound,
                fmt::format("cluster \"{}\" has not been probed", cluster.substr(0, 255)));
  return asked;
}

json head_of(const Asked& asked) {
  return {
      {"model", asked.profile->profile.model}, {"cluster", asked.fit->cluster_name}, {"fit", asked.fit->id}};
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

Reply get_scaling(Service& service, const Request& request) {
  const Asked asked = look_up(service, request);
  const int most = static_cast<int>(request.integer("most", 1, 4096, 64));
  const double bandwidth = request.number("bandwidth_scale", kSmallestScale, kLargestScale, 1);
  const double latency = request.number("latency_scale", kSmallestScale, kLargestScale, 1);
  const Cluster cluster = tuner::with_network(asked.fit->snapshot, latency, 1 / bandwidth);
  json out = head_of(asked);
  const auto permit = service.busy_permit();
  out["curves"] =
      tuner::to_json(tuner::scale(asked.profile->profile, cluster, count_series(fmt::format("1..{}", most))));
  return json_reply(out);
}

Reply get_phase_map(Service& service, const Request& request) {
  const Asked asked = look_up(service, request);
  std::vector<int> workers;
  for (const double value : numbers(request, "workers", 16, 1, 4096, {2, 4, 8, 16, 32}))
    workers.push_back(static_cast<int>(value));
  std::vector<double> per_byte;
  for (const double scale :
       numbers(request, "bandwidth_scales", 16, kSmallestScale, kLargestScale, {0.1, 0.3, 1, 3, 10}))
    per_byte.push_back(1 / scale);
  const std::vector<double> latency =
      numbers(request, "latency_scales", 4, kSmallestScale, kLargestScale, {1});
  tuner::TuneOptions options;
  options.draws = 0;
  json out = head_of(asked);
  const auto permit = service.busy_permit();
  const Profile& profile = asked.profile->profile;
  out["cells"] =
      tuner::to_json(tuner::phase_map(profile, asked.fit->snapshot, workers, latency, per_byte, options));
  out["flips"] = tuner::to_json(tuner::flip_points(profile, asked.fit->snapshot, options));
  return json_reply(out);
}

Reply get_servers(Service& service, const Request& request) {
  const Asked asked = look_up(service, request);
  tuner::TuneOptions options;
  options.draws = 0;
  options.workers = static_cast<int>(request.integer("workers", 1, 4096, asked.fit->snapshot.ranks()));
  const std::string_view placement = request.parameter("placement");
  if (!placement.empty() && placement != "colocated" && placement != "dedicated")
    throw Error(ErrorCode::kBadInput,
                fmt::format("parameter placement = \"{}\": expected colocated or dedicated",
                            placement.substr(0, 64)));
  const Placement where = placement == "dedicated" ? Placement::kDedicated : Placement::kColocated;
  const int most = static_cast<int>(request.integer("most", 1, 4096, options.workers));
  if (where == Placement::kColocated && most > options.workers)
    throw Error(ErrorCode::kBadInput,
                fmt::format("parameter most = {}: at most {} colocated servers, as many as workers", most,
                            options.workers));
  json out = head_of(asked);
  out["workers"] = options.workers;
  out["placement"] = to_string(where);
  const auto permit = service.busy_permit();
  out["points"] = tuner::to_json(tuner::server_sweep(
      asked.profile->profile, asked.fit->snapshot, count_series(fmt::format("1..{}", most)), where, options));
  return json_reply(out);
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
