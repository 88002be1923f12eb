#include "api/wire/order.h"

#include "perfmodel/json_reader.h"
#include "perfmodel/overloaded.h"
#include "perfmodel/road_json.h"

namespace commtune::api {
namespace {

using nlohmann::json;

constexpr std::string_view kOrderFormat = "commtune/order/1";
constexpr double kLongestSeconds = 1e7;
constexpr std::uint64_t kMostBytes = 1ULL << 50U;

constexpr std::pair<std::string_view, Network> kNetworks[] = {{"mpi", Network::kMpi}, {"tcp", Network::kTcp}};
constexpr std::pair<std::string_view, Result> kResults[] = {{"sum", Result::kSum}, {"mean", Result::kMean}};

json algorithms_to_json(const std::vector<Collective>& algorithms) {
  json out = json::array();
  for (const Collective algorithm : algorithms) out.push_back(commtune::to_json(Road{AllToAll{algorithm}}));
  return out;
}

json servers_to_json(const std::vector<ParameterServer>& servers) {
  json out = json::array();
  for (const ParameterServer& server : servers) out.push_back(commtune::to_json(Road{server}));
  return out;
}

int read_int(const JsonPlace& place, std::string_view key, int least, int most) {
  return static_cast<int>(place[key].signed_integer(least, most));
}

Bytes read_bytes(const JsonPlace& place, std::string_view key) {
  return Bytes{place[key].integer(0, kMostBytes)};
}

bool read_flag(const JsonPlace& place, std::string_view key) { return place[key].integer(0, 1) == 1; }

void read_roads(const JsonPlace& place, probes::ProbeOptions& options) {
  const JsonPlace algorithms = place["algorithms"];
  for (std::size_t i = 0, n = algorithms.size(0, 100); i < n; ++i) {
    match(
        road_from_json(algorithms[i]),
        [&](const AllToAll& one) { options.algorithms.push_back(one.algorithm); },
        [](const ParameterServer&) {});
  }
  const JsonPlace servers = place["servers"];
  for (std::size_t i = 0, n = servers.size(0, 10'000); i < n; ++i) {
    match(
        road_from_json(servers[i]), [](const AllToAll&) {},
        [&](const ParameterServer& one) { options.servers.push_back(one); });
  }
}

probes::ProbeOptions read_probe_options(const JsonPlace& place) {
  probes::ProbeOptions options;
  if (const auto budget = place.find("budget_seconds"))
    options.budget = Seconds{budget->number(0, kLongestSeconds)};
  options.traffic = read_bytes(place, "traffic_bytes");
  options.first = read_bytes(place, "first_bytes");
  options.last = read_bytes(place, "last_bytes");
  options.factor = place["factor"].number(1, 1e6);
  options.warmup = read_int(place, "warmup", 0, 1'000'000);
  options.iterations = read_int(place, "iterations", 1, 1'000'000);
  options.max_iterations = read_int(place, "max_iterations", 1, 1'000'000);
  options.width = place["width"].number(0, 1e3);
  read_roads(place, options);
  const JsonPlace groups = place["groups"];
  for (std::size_t i = 0, n = groups.size(0, 10'000); i < n; ++i)
    options.groups.push_back(static_cast<int>(groups[i].signed_integer(1, 1'000'000)));
  options.most_pairs_hosts = read_int(place, "most_pairs_hosts", 0, 1'000'000);
  options.seed = place["seed"].integer(0, ~0ULL);
  options.exclusive = read_flag(place, "exclusive");
  options.timeout = Seconds{place["timeout_seconds"].number(0, kLongestSeconds)};
  const JsonPlace settings = place["settings"];
  for (const auto& [name, value] : settings.object().items()) options.settings[name] = settings[name].text();
  options.cluster_name = place["cluster_name"].name();
  return options;
}

RunOptions read_run_options(const JsonPlace& place) {
  RunOptions options;
  options.iterations = read_int(place, "iterations", 0, 100'000'000);
  options.warmup = read_int(place, "warmup", 0, 1'000'000);
  options.check_iterations = read_int(place, "check_iterations", 0, 1'000'000);
  options.result = read_enum(place["result"], kResults);
  options.timeout = Seconds{place["timeout_seconds"].number(0, kLongestSeconds)};
  options.chunk = read_bytes(place, "chunk_bytes");
  options.trace_directory = place["trace_directory"].text();
  options.trace_steps = read_int(place, "trace_steps", 0, 1'000'000);
  return options;
}

/// "subnet" is an optional key of both orders.
json with_subnet(json order, const std::string& subnet) {
  if (!subnet.empty()) order["subnet"] = subnet;
  return order;
}

std::string read_subnet(const JsonPlace& place) {
  const auto subnet = place.find("subnet");
  return subnet ? subnet->text() : std::string{};
}

json body(const ProbeOrder& order) {
  json earlier = json::array();
  for (const probes::ProbeSample& sample : order.earlier) earlier.push_back(probes::to_json(sample));
  json out{{"order", "probe"},
           {"format", kOrderFormat},
           {"network", to_string(order.network)},
           {"options", settings_of(order.options)},
           {"earlier_fingerprint", order.earlier_fingerprint},
           {"earlier", std::move(earlier)},
           {"compare", order.compare ? 1 : 0}};
  return with_subnet(std::move(out), order.subnet);
}

json body(const RunOrder& order) {
  json out{{"order", "run"},
           {"format", kOrderFormat},
           {"network", to_string(order.network)},
           {"plan", commtune::to_json(order.plan)},
           {"profile", commtune::to_json(order.profile)},
           {"pace_bytes_per_second", order.pace},
           {"options", settings_of(order.options)}};
  return with_subnet(std::move(out), order.subnet);
}

}  // namespace

std::string to_string(Network network) { return enum_name(network, kNetworks); }

json settings_of(const probes::ProbeOptions& options) {
  json out{{"traffic_bytes", options.traffic.count},
           {"first_bytes", options.first.count},
           {"last_bytes", options.last.count},
           {"factor", options.factor},
           {"warmup", options.warmup},
           {"iterations", options.iterations},
           {"max_iterations", options.max_iterations},
           {"width", options.width},
           {"algorithms", algorithms_to_json(options.algorithms)},
           {"servers", servers_to_json(options.servers)},
           {"groups", options.groups},
           {"most_pairs_hosts", options.most_pairs_hosts},
           {"seed", options.seed},
           {"exclusive", options.exclusive ? 1 : 0},
           {"timeout_seconds", options.timeout.count()},
           {"settings", options.settings},
           {"cluster_name", options.cluster_name}};
  if (options.budget) out["budget_seconds"] = options.budget->count();
  return out;
}

json settings_of(const RunOptions& options) {
  return {{"iterations", options.iterations},
          {"warmup", options.warmup},
          {"check_iterations", options.check_iterations},
          {"result", enum_name(options.result, kResults)},
          {"timeout_seconds", options.timeout.count()},
          {"chunk_bytes", options.chunk.count},
          {"trace_directory", options.trace_directory},
          {"trace_steps", options.trace_steps}};
}

json to_json(const Order& order) {
  return std::visit([](const auto& one) { return body(one); }, order);
}

Order order_from_json(const json& document) {
  const JsonPlace place(document);
  place.expect_format(kOrderFormat);
  const std::string what = place["order"].name();
  const Network network = read_enum(place["network"], kNetworks);
  if (what == "probe") {
    ProbeOrder order{network, read_probe_options(place["options"]), place["earlier_fingerprint"].text(),
                     {},      read_flag(place, "compare"),          read_subnet(place)};
    const JsonPlace earlier = place["earlier"];
    for (std::size_t i = 0, n = earlier.size(0, 10'000'000); i < n; ++i) {
      const JsonPlace sample = earlier[i];
      order.earlier.push_back(probes::probe_sample_from_json(sample.object()));
    }
    return order;
  }
  if (what == "run") {
    const JsonPlace plan = place["plan"];
    const JsonPlace profile = place["profile"];
    return RunOrder{network,
                    plan_from_json(plan.object()),
                    profile_from_json(profile.object()),
                    read_run_options(place["options"]),
                    place["pace_bytes_per_second"].number(0, 1e15),
                    read_subnet(place)};
  }
  place["order"].fail("\"probe\" or \"run\"");
}

}  // namespace commtune::api
