#include "api/actions/context.h"

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <utility>

#include "api/version.h"
#include "executor/transport/registry/kinds.h"
#include "perfmodel/base/error.h"
#include "store/owner.h"

namespace commtune::api {
namespace {

constexpr std::string_view kRemoteAgent = "OMPI_MCA_plm_rsh_agent";
// Among transport_settings().
constexpr std::string_view kSubnet = "subnet", kNetworkOptions = "network_options";

/// As probes name settings; "" where there is none.
std::string setting_among(const std::map<std::string, std::string>& facts, std::string_view name) {
  const auto found = facts.find(fmt::format("setting.{}", name));
  return found == facts.end() ? "" : found->second;
}

}  // namespace

void Placing::check() const {
  const TransportKind* kind = find_transport(network);
  if (const auto why = not_between_processes(network)) throw Error(ErrorCode::kUnavailable, *why);
  if (!network_options.empty() && kind->own.empty()) {
    throw Error(
        ErrorCode::kBadInput,
        fmt::format("network_options = {}: --network {} takes none, only {} does", network_options, network,
                    transport_names([](const TransportKind& each) { return !each.own.empty(); })));
  }
  if (subnet.empty() || kind->takes_subnet) return;
  throw Error(
      ErrorCode::kBadInput,
      fmt::format("subnet = {}: only --network {} takes one; Open MPI is told with --mpirun-arg=--mca "
                  "--mpirun-arg=btl_tcp_if_include --mpirun-arg={}",
                  subnet, transport_names([](const TransportKind& each) { return each.takes_subnet; }),
                  subnet));
}

ProbedOver probed_over(std::string_view transport, const std::map<std::string, std::string>& facts) {
  ProbedOver over;
  if (!transport.empty()) over.network = transport;
  over.subnet = setting_among(facts, kSubnet);
  over.network_options = setting_among(facts, kNetworkOptions);
  return over;
}

HostList choose_hosts(const Settings& settings, std::string_view list) {
  if (!list.empty()) return parse_host_list(list);
  if (settings.hosts.empty()) return local_hosts(settings.local_ranks);
  std::ifstream in(settings.hosts);
  if (!in)
    throw Error(ErrorCode::kNotFound,
                fmt::format("hostfile {}: does not exist or cannot be read", settings.hosts.string()));
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  return parse_hostfile(text, settings.hosts.string());
}

Store open_store(const Settings& settings) {
  OpenOptions options;
  options.version = kVersion;
  Store store = Store::open(settings.database, std::move(options));
  store.interrupt_abandoned(is_gone);
  return store;
}

LaunchOptions launch_options(const Context& context, const Placing& placing, int ranks) {
  LaunchOptions options;
  options.mpirun.program = context.settings.mpirun;
  options.mpirun.extra = placing.mpirun_arguments;
  options.mpirun.rank_command = {context.settings.rank_program.string()};
  options.mpirun.hosts = placing.hosts;
  options.mpirun.ranks = ranks;
  options.mpirun.remote_agent_chosen = !lookup(context.environment, kRemoteAgent).empty();
  options.start_timeout = context.settings.start_timeout;
  options.silence_timeout = context.settings.silence_timeout;
  return options;
}

std::map<std::string, std::string> transport_settings(const Context& context, const Placing& placing) {
  std::map<std::string, std::string> settings;
  constexpr std::string_view kPrefix = "OMPI_MCA_";
  for (auto it = context.environment.lower_bound(kPrefix); it != context.environment.end(); ++it) {
    if (!it->first.starts_with(kPrefix)) break;
    // How hosts are reached (plm, rsh) does not change what is measured there.
    if (!it->first.starts_with("OMPI_MCA_plm")) settings[it->first] = it->second;
  }
  if (!placing.subnet.empty()) settings.emplace(kSubnet, placing.subnet);
  if (!placing.network_options.empty()) settings.emplace(kNetworkOptions, placing.network_options);
  for (const std::string& argument : placing.mpirun_arguments) {
    std::string& all = settings["mpirun"];
    all += (all.empty() ? "" : " ") + argument;
  }
  return settings;
}

void say_notes(const Context& context, const HostList& hosts) {
  for (const std::string& note : hosts.notes) context.note(note);
}

}  // namespace commtune::api
