#include "probes/host/gpu_facts.h"

#include <fmt/format.h>
#include <nvml.h>

#include <array>

#include "executor/base/shared_library.h"
#include "executor/collectives/nccl/release.h"
#include "executor/memory/cuda/device.h"
#include "executor/memory/cuda/gpu_memory.h"

namespace commtune::probes {
namespace {

constexpr const char* kFile = "libnvidia-ml.so.1";

#define COMMTUNE_NVML_TEXT(NAME) #NAME
#define COMMTUNE_NVML_SYMBOL(NAME) COMMTUNE_NVML_TEXT(NAME)
#define COMMTUNE_NVML_FUNCTIONS(FUNCTION)                       \
  FUNCTION(init, nvmlInit)                                      \
  FUNCTION(shutdown, nvmlShutdown)                              \
  FUNCTION(driver_version, nvmlSystemGetDriverVersion)          \
  FUNCTION(device_at, nvmlDeviceGetHandleByPciBusId)            \
  FUNCTION(most_clock, nvmlDeviceGetMaxClockInfo)               \
  FUNCTION(power_limit, nvmlDeviceGetEnforcedPowerLimit)        \
  FUNCTION(pcie_generation, nvmlDeviceGetMaxPcieLinkGeneration) \
  FUNCTION(pcie_width, nvmlDeviceGetMaxPcieLinkWidth)           \
  FUNCTION(link_state, nvmlDeviceGetNvLinkState)                \
  FUNCTION(ecc_mode, nvmlDeviceGetEccMode)                      \
  FUNCTION(mig_mode, nvmlDeviceGetMigMode)

/// NVML, from its start to its end.
class Management {
 public:
  Management() : file_(kFile) {
#define COMMTUNE_NVML_FIND(MEMBER, NAME) file_.find(MEMBER, COMMTUNE_NVML_SYMBOL(NAME));
    COMMTUNE_NVML_FUNCTIONS(COMMTUNE_NVML_FIND)
#undef COMMTUNE_NVML_FIND
    started_ = file_.is_there() && file_.missing().empty() && init() == NVML_SUCCESS;
  }
  ~Management() {
    if (started_) shutdown();
  }
  Management(const Management&) = delete;
  Management& operator=(const Management&) = delete;
  bool is_there() const { return started_; }

// NOLINTNEXTLINE(bugprone-macro-parentheses): names of a declaration
#define COMMTUNE_NVML_MEMBER(MEMBER, NAME) decltype(&NAME) MEMBER = nullptr;
  COMMTUNE_NVML_FUNCTIONS(COMMTUNE_NVML_MEMBER)
#undef COMMTUNE_NVML_MEMBER

 private:
  SharedLibrary file_;
  bool started_ = false;
};

int active_links(const Management& nvml, nvmlDevice_t device) {
  int active = 0;
  for (unsigned link = 0; link < NVML_NVLINK_MAX_LINKS; ++link) {
    nvmlEnableState_t state = NVML_FEATURE_DISABLED;
    if (nvml.link_state(device, link, &state) == NVML_SUCCESS && state == NVML_FEATURE_ENABLED) ++active;
  }
  return active;
}

/// What NVML adds to a GPU's name and memory: each part with the comma before it.
std::string told_by(const Management& nvml, const std::string& bus_id) {
  nvmlDevice_t device = nullptr;
  if (!nvml.is_there() || nvml.device_at(bus_id.c_str(), &device) != NVML_SUCCESS) return "";
  std::string text;
  unsigned first = 0;
  unsigned second = 0;
  if (nvml.most_clock(device, NVML_CLOCK_SM, &first) == NVML_SUCCESS &&
      nvml.most_clock(device, NVML_CLOCK_MEM, &second) == NVML_SUCCESS)
    text += fmt::format(", at most {} and {} MHz", first, second);
  if (nvml.power_limit(device, &first) == NVML_SUCCESS) text += fmt::format(", {} W", first / 1000);
  if (nvml.pcie_generation(device, &first) == NVML_SUCCESS &&
      nvml.pcie_width(device, &second) == NVML_SUCCESS)
    text += fmt::format(", PCIe {} x{}", first, second);
  if (const int links = active_links(nvml, device); links > 0) text += fmt::format(", {} NVLinks", links);
  nvmlEnableState_t ecc = NVML_FEATURE_DISABLED;
  nvmlEnableState_t ecc_after_reset = NVML_FEATURE_DISABLED;
  if (nvml.ecc_mode(device, &ecc, &ecc_after_reset) == NVML_SUCCESS)
    text += ecc == NVML_FEATURE_ENABLED ? ", ECC" : ", no ECC";
  if (nvml.mig_mode(device, &first, &second) == NVML_SUCCESS && first != 0) text += ", in MIG mode";
  return text;
}

std::string driver_release(const Management& nvml) {
  std::array<char, NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE> text{};
  const bool known = nvml.is_there() && nvml.driver_version(text.data(), text.size()) == NVML_SUCCESS;
  return known ? text.data() : "";
}

}  // namespace

GpuFacts gpu_facts() {
  GpuFacts facts;
  const Management nvml;
  for (int number = 0; number < gpu_count(); ++number) {
    const cuda::GpuTraits gpu(number);
    facts.what[fmt::format("gpu_{}", number)] =
        fmt::format("{}, {} MiB{}", gpu.name(), gpu.memory_bytes() >> 20U, told_by(nvml, gpu.bus_id()));
  }
  if (const std::string driver = driver_release(nvml); !driver.empty())
    facts.releases["nvidia_driver"] = driver;
  if (const std::string nccl = nccl_release(); !nccl.empty()) facts.releases["nccl"] = nccl;
  return facts;
}

}  // namespace commtune::probes
