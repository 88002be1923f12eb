#include "api/question/case.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "api/launch/hosts.h"
#include "api/options.h"
#include "perfmodel/base/error.h"
#include "tuner/whatif.h"

namespace commtune::api {
namespace {

constexpr int kMostWorkers = 4096;
constexpr std::size_t kMostDrawnTensors = 2'000'000;  // some seconds

/// The hosts that the allocation names, with as many workers each as it says.
std::vector<Host> allocated_hosts(const Allocation& allocation, const Cluster& fitted) {
  std::vector<Host> hosts = fitted.hosts;
  if (!allocation.nodes.empty()) {
    std::vector<std::string> absent;
    std::vector<Host> named;
    for (const Host& wanted : parse_host_list(allocation.nodes).hosts) {
      const auto known = std::find_if(fitted.hosts.begin(), fitted.hosts.end(),
                                      [&](const Host& host) { return host.name == wanted.name; });
      if (known == fitted.hosts.end()) {
        absent.push_back(wanted.name);
      } else {
        named.push_back(*known);
      }
    }
    if (!absent.empty())
      throw Error(
          ErrorCode::kNotFound,
          fmt::format(
              "nodes: cluster \"{}\" was measured without {}", fitted.name,
              fmt::join(absent.begin(),
                        absent.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(3, absent.size())),
                        ", ")));
    hosts = std::move(named);
  }
  if (allocation.node_count > 0)
    hosts.resize(static_cast<std::size_t>(allocation.node_count), hosts.empty() ? Host{} : hosts.front());
  if (allocation.devices_per_node > 0)
    for (Host& host : hosts) host.slots = allocation.devices_per_node;
  return hosts;
}

nlohmann::json written_hosts(const std::vector<Host>& hosts) {
  nlohmann::json out = nlohmann::json::array();
  for (const Host& host : hosts) out.push_back({{"name", host.name}, {"slots", host.slots}});
  return out;
}

}  // namespace

void check_draws(int draws, const Profile& profile) {
  const std::size_t tensors = std::max<std::size_t>(1, profile.tensor_count());
  if (static_cast<std::size_t>(draws) > kMostDrawnTensors / tensors)
    throw Error(ErrorCode::kBadInput, fmt::format("draws: {} for {} tensors, must be at most {}", draws,
                                                  tensors, kMostDrawnTensors / tensors));
}

void check_size(const Case& made) {
  if (made.cluster.ranks() > kMostWorkers)
    throw Error(ErrorCode::kBadInput,
                fmt::format("node_count: {} nodes have {} workers, must be at most {}",
                            made.cluster.hosts.size(), made.cluster.ranks(), kMostWorkers));
  check_draws(made.options.draws, made.profile);
}

/// What another batch makes of layers' times.
double batch_ratio(const Profile& profile, int batch) {
  if (batch == profile.batch) return 1;
  if (profile.batch == 0)
    throw Error(ErrorCode::kBadInput,
                fmt::format("overrides.batch: {}: it is not known of which batch the times of {} are; scale "
                            "them by {}",
                            batch, profile.model, knob::kDeviceSpeedScale.flag));
  return static_cast<double>(batch) / profile.batch;
}

Case make_case(const Question& question, const Allocation& allocation, Profile profile,
               const Cluster& fitted) {
  const Overrides& change = question.overrides;
  const int batch = change.batch > 0 ? change.batch : profile.batch;
  const double time = batch_ratio(profile, batch) / change.device_speed_scale;
  Case made{std::move(profile), fitted, {}};
  if (time != 1 || change.gradient_scale != 1)
    made.profile = scaled(made.profile, change.gradient_scale, time);
  made.profile.batch = batch;
  if (change.bandwidth_scale != 1 || change.latency_scale != 1)
    made.cluster = tuner::with_network(fitted, change.latency_scale, 1 / change.bandwidth_scale);
  made.cluster.hosts = allocated_hosts(allocation, fitted);
  for (std::size_t i = 0; i < made.cluster.others.size(); ++i)
    made.cluster.others[i].hosts = allocated_hosts(allocation, fitted.others[i]);
  made.options.workers = allocation.workers;
  made.options.limits = allocation.limits;
  made.options.draws = question.draws;
  made.options.seed = question.seed;
  made.options.thorough = question.thorough;
  made.options.barrier = question.barrier;
  made.options.wire = question.wire;
  made.options.check();
  return made;
}

nlohmann::json record_of(const Case& made, const Overrides& overrides, const std::string& cluster,
                         std::optional<std::int64_t> fit, const std::map<std::string, std::int64_t>& fits) {
  nlohmann::json record{{"cluster", cluster},
                        {"fit", fit ? nlohmann::json(*fit) : nlohmann::json(nullptr)},
                        {"hosts", written_hosts(made.cluster.hosts)},
                        {"workers", made.options.workers},
                        {"servers", made.options.limits.colocated_servers},
                        {"dedicated_servers", made.options.limits.dedicated_servers},
                        {"draws", made.options.draws},
                        {"seed", made.options.seed},
                        {"overrides", to_json(overrides)}};
  if (made.options.limits.hashed) record["hashed"] = true;
  if (made.options.thorough) record["thorough"] = true;
  if (made.options.barrier) record["barrier"] = to_string(*made.options.barrier);
  if (made.options.wire != WireFormat::kAsIs) record["wire"] = to_string(made.options.wire);
  if (!fits.empty()) record["fits"] = fits;
  return record;
}

Case case_from_record(const nlohmann::json& record, const Profile& profile, const Cluster& fitted) {
  Case made{profile, fitted, {}};
  if (const nlohmann::json& changes = record.at("overrides"); changes.is_object()) {
    const Overrides change = overrides_from_json(JsonPlace(changes));
    made.cluster = tuner::with_network(fitted, change.latency_scale, 1 / change.bandwidth_scale);
  }
  made.cluster.hosts.clear();
  for (const nlohmann::json& host : record.at("hosts"))
    made.cluster.hosts.push_back({host.at("name").get<std::string>(), host.at("slots").get<int>()});
  for (Cluster& other : made.cluster.others) other.hosts = made.cluster.hosts;
  made.options.workers = record.at("workers").get<int>();
  made.options.limits.colocated_servers = record.at("servers").get<int>();
  made.options.limits.dedicated_servers = record.at("dedicated_servers").get<int>();
  made.options.limits.hashed = record.value("hashed", false);
  made.options.thorough = record.value("thorough", false);
  if (const auto barrier = record.find("barrier"); barrier != record.end())
    made.options.barrier = barrier_named(barrier->get<std::string>());
  if (const auto wire = record.find("wire"); wire != record.end())
    made.options.wire = wire_format_named(wire->get<std::string>());
  made.options.draws = record.at("draws").get<int>();
  made.options.seed = record.at("seed").get<std::uint64_t>();
  return made;
}

}  // namespace commtune::api
