#include "probes/host/cluster_facts.h"

#include <gnu/libc-version.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "executor/base/wire_revision.h"
#include "executor/session/exchange.h"
#include "executor/transport/communicator.h"
#include "executor/transport/mpi/release.h"
#include "perfmodel/base/json_reader.h"
#include "probes/analysis/fit_cluster.h"
#include "probes/host/gpu_facts.h"
#include "probes/host/host_facts.h"

namespace commtune::probes {

namespace {

constexpr std::string_view kHost = "host.", kRelease = "release.";

Facts releases() {
  return {
      {"commtune", COMMTUNE_VERSION}, {"open_mpi", open_mpi_release()}, {"glibc", gnu_get_libc_version()}};
}

Facts facts_from_text(const std::string& text) {
  Facts facts;
  const nlohmann::json document = parse_json(text, "facts of a rank");
  const JsonPlace place(document);
  for (const auto& [name, value] : place.object().items()) {
    const JsonPlace fact = place[name];
    facts[name] = fact.text();
  }
  return facts;
}

}  // namespace

Facts own_facts(const Peers& peers, DeviceKind device) {
  const auto me = peers.hosts.begin() + peers.rank;
  if (std::find(peers.hosts.begin(), me, *me) != me) return {};
  Facts facts;
  for (const auto& [name, value] : host_facts()) facts[std::string(kHost) + *me + "." + name] = value;
  for (const auto& [name, value] : releases()) facts[std::string(kRelease) + *me + "." + name] = value;
  if (device != DeviceKind::kCuda) return facts;
  const GpuFacts gpus = gpu_facts();
  for (const auto& [name, value] : gpus.what) facts[std::string(kHost) + *me + "." + name] = value;
  for (const auto& [name, value] : gpus.releases) facts[std::string(kRelease) + *me + "." + name] = value;
  return facts;
}

Facts end_facts(const Transport& transport) {
  const Peers& peers = transport.peers();
  const std::string& host = peers.hosts[static_cast<std::size_t>(peers.rank)];
  const EndFacts end = transport.facts();
  const auto key = [&](std::string_view kind, const std::string& name) {
    return std::string(kind).append(host).append(".").append(name);
  };
  Facts facts;
  for (const auto& [name, value] : end.what) facts[key(kHost, name)] = value;
  for (const auto& [name, value] : end.releases) facts[key(kRelease, name)] = value;
  return facts;
}

Facts joined_facts(std::span<const Facts> said) {
  Facts facts;
  for (const Facts& each : said) facts.insert(each.begin(), each.end());
  facts[std::string(kWireRevisionFact)] = std::to_string(kWireRevision);
  return facts;
}

Facts gather_facts(Transport& transport, Deadline until, DeviceKind device) {
  Communicator communicator(transport);
  Facts known = own_facts(transport.peers(), device);
  known.merge(end_facts(transport));
  const nlohmann::json own = known;
  const std::vector<std::string> texts = gather(communicator, own.dump(), until);
  if (transport.peers().rank != 0) return {};
  std::vector<Facts> said;
  said.reserve(texts.size());
  for (const std::string& text : texts) said.push_back(facts_from_text(text));
  return joined_facts(said);
}

}  // namespace commtune::probes
