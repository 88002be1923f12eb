// libnvidia-ml.so.1 of the stand-in: what the probes ask of a GPU.

#include <nvml.h>

#include <cstdint>
#include <cstdio>
#include <string>

#include "tests/gpu/standin/settings.h"

#define COMMTUNE_STANDIN_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

unsigned gpus() { return static_cast<unsigned>(commtune::standin::setting("GPUS", 1)); }

/// Handles are the GPUs' numbers, from 1.
nvmlDevice_t handle_of(unsigned number) {
  return reinterpret_cast<nvmlDevice_t>(static_cast<std::uintptr_t>(number) + 1);
}
unsigned number_of(nvmlDevice_t device) {
  return static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(device) - 1);
}
nvmlReturn_t write_text(char* text, unsigned length, const std::string& what) {
  if (what.size() + 1 > length) return NVML_ERROR_INSUFFICIENT_SIZE;
  std::snprintf(text, length, "%s", what.c_str());
  return NVML_SUCCESS;
}
std::string bus_id_of(unsigned number) { return "00000000:0" + std::to_string(number + 1) + ":00.0"; }

}  // namespace

COMMTUNE_STANDIN_EXPORT nvmlReturn_t nvmlInit_v2() { return NVML_SUCCESS; }
COMMTUNE_STANDIN_EXPORT nvmlReturn_t nvmlShutdown() { return NVML_SUCCESS; }
COMMTUNE_STANDIN_EXPORT const char* nvmlErrorString(nvmlReturn_t result) {
  return result == NVML_SUCCESS ? "Success (stand-in)" : "Not Supported (stand-in)";
}
COMMTUNE_STANDIN_EXPORT nvmlReturn_t nvmlSystemGetDriverVersion(char* text, unsigned length) {
  return write_text(text, length, "580.0-standin");
}
COMMTUNE_STANDIN_EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned* count) {
  *count = gpus();
  return NVML_SUCCESS;
}
COMMTUNE_STANDIN_EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t* device) {
  *device = handle_of(index);
  return index < gpus() ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}
COMMTUNE_STANDIN_EXPORT nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id,
                                                                      nvmlDevice_t* device) {
  const std::string text = bus_id;
  for (unsigned number = 0; number < gpus(); ++number) {
    const std::string whole = bus_id_of(number);
    if (text != whole && text != whole.substr(4)) continue;
    *device = handle_of(number);
    return NVML_SUCCESS;
  }
  return NVML_ERROR_NOT_FOUND;
}
COMMTUNE_STANDIN_EXPORT nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t /*device*/, char* text, unsigned length) {
  return write_text(text, length, "commtune stand-in GPU");
}
COMMTUNE_STANDIN_EXPORT nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char* text, unsigned length) {
  return write_text(text, length, "GPU-standin-" + std::to_string(number_of(device)));
}
COMMTUNE_STANDIN_EXPORT nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t /*device*/, nvmlClockType_t type,
                                                               unsigned* clock) {
  *clock = type == NVML_CLOCK_MEM ? 2000 : 1500;
  return NVML_SUCCESS;
}
COMMTUNE_STANDIN_EXPORT nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type,
                                                            unsigned* clock) {
  return nvmlDeviceGetMaxClockInfo(device, type, clock);
}
COMMTUNE_STANDIN_EXPORT nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t /*device*/,
                                                                     unsigned* milliwatts) {
  *milliwatts = 300'000;
  return NVML_SUCCESS;
}
COMMTUNE_STANDIN_EXPORT nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t /*device*/,
                                                                         unsigned* generation) {
  *generation = 5;
  return NVML_SUCCESS;
}
COMMTUNE_STANDIN_EXPORT nvmlReturn_t nvmlDeviceGetMaxPcieLinkGeneration(nvmlDevice_t /*device*/,
                                                                        unsigned* generation) {
  *generation = 5;
  return NVML_SUCCESS;
}
COMMTUNE_STANDIN_EXPORT nvmlReturn_t nvmlDeviceGetMaxPcieLinkWidth(nvmlDevice_t /*device*/, unsigned* width) {
  *width = 16;
  return NVML_SUCCESS;
}
COMMTUNE_STANDIN_EXPORT nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t /*device*/, unsigned /*link*/,
                                                              nvmlEnableState_t* /*state*/) {
  return NVML_ERROR_NOT_SUPPORTED;
}
COMMTUNE_STANDIN_EXPORT nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t /*device*/, nvmlEnableState_t* current,
                                                          nvmlEnableState_t* pending) {
  *current = *pending = NVML_FEATURE_ENABLED;
  return NVML_SUCCESS;
}
COMMTUNE_STANDIN_EXPORT nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t /*device*/, unsigned* /*current*/,
                                                          unsigned* /*pending*/) {
  return NVML_ERROR_NOT_SUPPORTED;
}
