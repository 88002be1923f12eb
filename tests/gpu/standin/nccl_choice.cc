#include "tests/gpu/standin/nccl_choice.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "tests/gpu/standin/settings.h"

namespace commtune::standin {
namespace {

using nccl_tuner::kAlgorithms;
using nccl_tuner::kIgnored;
using nccl_tuner::kProtocols;

constexpr NcclTuning kUsual{NcclAlgorithm::kRing, NcclProtocol::kSimple};

std::mutex g_mutex;
std::string g_last;  // guarded by g_mutex

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string in_capitals(std::string text) {
  for (char& each : text) each = static_cast<char>(std::toupper(static_cast<unsigned char>(each)));
  return text;
}

std::size_t place_of(const NcclTuning& tuning) {
  return (static_cast<std::size_t>(tuning.algorithm) - 1) * kProtocols +
         static_cast<std::size_t>(tuning.protocol) - 1;
}

std::vector<NcclTuning> all_tunings() {
  std::vector<NcclTuning> all{kUsual};
  for (const auto& [algorithm_name, algorithm] : kNcclAlgorithms) {
    for (const auto& [protocol_name, protocol] : kNcclProtocols) {
      const NcclTuning tuning{algorithm, protocol};
      if (tuning != kUsual) all.push_back(tuning);
    }
  }
  return all;
}

}  // namespace

double NcclCosts::microseconds(double bytes) const {
  return alpha_microseconds + (bytes_per_second > 0 ? bytes / bytes_per_second * 1e6 : 0);
}

NcclCosts nccl_costs(const NcclTuning& tuning) {
  std::string name = "NCCL_" + in_capitals(std::string(name_of(tuning.algorithm)));
  name += "_" + in_capitals(std::string(name_of(tuning.protocol)));
  return {setting((name + "_ALPHA_US").c_str(), setting("NCCL_ALPHA_US", 0)),
          setting((name + "_BYTES_PER_S").c_str(), setting("NCCL_BYTES_PER_S", 0))};
}

NcclChoice::NcclChoice(int ranks, std::uint32_t channels)
    : algorithm_(variable("NCCL_ALGO")), protocol_(variable("NCCL_PROTO")), channels_(channels) {
  if (const std::string plugin = variable("NCCL_TUNER_PLUGIN"); !plugin.empty())
    open_plugin(plugin, static_cast<std::size_t>(ranks));
}

NcclChoice::~NcclChoice() {
  if (context_ != nullptr) plugin_->close(context_);
}

void NcclChoice::open_plugin(const std::string& file, std::size_t ranks) {
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return;
  plugin_ = static_cast<const nccl_tuner::TunerV5*>(dlsym(library, "ncclTunerPlugin_v5"));
  if (plugin_ == nullptr) return;
  std::array<double, 1024> constants{};  // more than any version has
  const auto nodes = static_cast<std::size_t>(setting("NCCL_NODES", 1));
  plugin_->init(&context_, 1, ranks, nodes, nullptr, nullptr, constants.data());
}

bool NcclChoice::is_offered(const NcclTuning& tuning, int function) const {
  const bool runs = tuning.algorithm == NcclAlgorithm::kRing ||
                    (tuning.algorithm == NcclAlgorithm::kTree && function == nccl_tuner::kAllReduce);
  return runs && (algorithm_.empty() || algorithm_ == name_of(tuning.algorithm)) &&
         (protocol_.empty() || protocol_ == name_of(tuning.protocol));
}

std::optional<NcclTuning> NcclChoice::of(int function, std::size_t bytes) const {
  std::array<float, std::size_t{kAlgorithms} * kProtocols> costs{};
  costs.fill(kIgnored);
  for (const NcclTuning& tuning : all_tunings()) {
    if (is_offered(tuning, function)) costs[place_of(tuning)] = 1;
  }
  int channels = static_cast<int>(channels_);
  if (context_ != nullptr) {
    plugin_->get_tuning(context_, function, bytes, 1, reinterpret_cast<float**>(costs.data()), kAlgorithms,
                        kProtocols, 0, &channels);
  }
  std::optional<NcclTuning> best;
  for (const NcclTuning& tuning : all_tunings()) {
    const float cost = costs[place_of(tuning)];
    if (cost != kIgnored && (!best || cost < costs[place_of(*best)])) best = tuning;
  }
  if (!best) return std::nullopt;
  best->channels = static_cast<std::uint32_t>(channels);
  const std::lock_guard lock(g_mutex);
  g_last = to_string(*best);
  return best;
}

std::string last_nccl_choice() {
  const std::lock_guard lock(g_mutex);
  return g_last;
}

}  // namespace commtune::standin
