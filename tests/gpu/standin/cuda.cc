// libcuda.so.1 of the stand-in: the calls that commtune makes (executor/memory/cuda/driver.h). It says by its
// name what it is, and refuses what it does not know.

#include <cuda.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/gpu/standin/cuda_objects.h"
#include "tests/gpu/standin/device_memory.h"
#include "tests/gpu/standin/settings.h"
#include "tests/gpu/standin/twins.h"

namespace commtune::standin {
namespace {

constexpr int kLowestPriority = 0, kHighestPriority = -5;
constexpr int kMultiprocessors = 16;
constexpr int kDriverVersion = 13000;

thread_local CUctx_st* g_current = nullptr;

int gpus() { return static_cast<int>(setting("GPUS", 1)); }

std::vector<CUctx_st>& contexts() {
  static auto* const all = [] {
    auto* const made = new std::vector<CUctx_st>(static_cast<std::size_t>(gpus()));
    for (int i = 0; i < gpus(); ++i) (*made)[static_cast<std::size_t>(i)].device = i;
    return made;
  }();
  return *all;
}

/// Streams that are there.
class Streams {
 public:
  void add(CUstream stream) {
    const std::lock_guard lock(mutex_);
    streams_.insert(stream);
  }
  bool remove(CUstream stream) {
    const std::lock_guard lock(mutex_);
    return streams_.erase(stream) > 0;
  }
  bool has(CUstream stream) {
    const std::lock_guard lock(mutex_);
    return streams_.contains(stream);
  }
  void synchronize() {
    const std::lock_guard lock(mutex_);
    for (CUstream stream : streams_) stream->works.synchronize();
  }

 private:
  std::mutex mutex_;
  std::set<CUstream> streams_;
};

Streams& streams() {
  static auto* const all = new Streams;
  return *all;
}

/// What every call asks first.
CUresult ready() {
  if (in_host_function()) return CUDA_ERROR_NOT_PERMITTED;
  return g_current == nullptr ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}

/// The stand-in has no default stream: commtune uses none.
CUresult usable(CUstream stream) {
  const CUresult result = ready();
  if (result != CUDA_SUCCESS) return result;
  return streams().has(stream) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

bool is_on_device(CUdeviceptr address, std::size_t bytes) {
  DeviceMemory::Range range;
  return device_memory().find(reinterpret_cast<const void*>(address), bytes, range) &&
         range.device != DeviceMemory::kHost;
}

CUresult copy(CUstream stream, void* into, const void* from, std::size_t bytes) {
  stream->works.put([=] {
    const auto start = std::chrono::steady_clock::now();
    std::memcpy(into, from, bytes);
    take_time(start, setting("COPY_US", 0), static_cast<double>(bytes), setting("COPY_BYTES_PER_S", 0));
  });
  return CUDA_SUCCESS;
}

/// A launch's own copy of its arguments.
class Arguments {
 public:
  Arguments(const NamedTwin& twin, void** given) {
    for (std::size_t i = 0; i < twin.parameter_bytes.size(); ++i) {
      values_.push_back(std::make_unique<std::byte[]>(twin.parameter_bytes[i]));
      std::memcpy(values_.back().get(), given[i], twin.parameter_bytes[i]);
      places_.push_back(values_.back().get());
    }
  }
  void* const* places() const { return places_.data(); }

 private:
  std::vector<std::unique_ptr<std::byte[]>> values_;
  std::vector<void*> places_;
};

struct NamedError {
  CUresult code;
  const char* name;
  const char* text;
};
constexpr std::array kErrors{
    NamedError{CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
    NamedError{CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    NamedError{CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    NamedError{CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    NamedError{CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    NamedError{CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    NamedError{CUDA_ERROR_DEVICE_UNAVAILABLE, "CUDA_ERROR_DEVICE_UNAVAILABLE",
               "CUDA-capable device(s) is/are busy or unavailable"},
    NamedError{CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    NamedError{CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    NamedError{CUDA_ERROR_NOT_PERMITTED, "CUDA_ERROR_NOT_PERMITTED", "operation not permitted"},
    NamedError{CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "the stand-in has no such thing"},
    NamedError{CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
               "part or all of the requested memory range is already mapped"},
    NamedError{CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
               "pointer does not correspond to a registered memory region"},
};

const NamedError* find_error(CUresult code) {
  for (const NamedError& error : kErrors) {
    if (error.code == code) return &error;
  }
  return nullptr;
}

void write_text(char* text, int length, const std::string& what) {
  std::snprintf(text, static_cast<std::size_t>(length), "%s", what.c_str());
}

bool is_gpu(CUdevice device) { return device >= 0 && device < gpus(); }

}  // namespace
}  // namespace commtune::standin

using namespace commtune::standin;

// ---- The driver and its devices ----

COMMTUNE_STANDIN_EXPORT CUresult CUDAAPI cuInit(unsigned flags) {
  return flags == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
COMMTUNE_STANDIN_EXPORT CUresult CUDAAPI cuDriverGetVersion(int* version) {
  *version = kDriverVersion;
  return CUDA_SUCCESS;
}
COMMTUNE_STANDIN_EXPORT CUresult CUDAAPI cuGetErrorName(CUresult error, const char** text) {
  const NamedError* const known = find_error(error);
  *text = known == nullptr ? nullptr : known->name;
  return known == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
COMMTUNE_STANDIN_EXPORT CUresult CUDAAPI cuGetErrorString(CUresult error, const char** text) {
  const NamedError* const known = find_error(error);
  *text = known == nullptr ? nullptr : known->text;
  return known == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
COMMTUNE_STANDIN_EXPORT CUresult CUDAAPI cuDeviceGetCount(int* count) {
  *count = gpus();
  return CUDA_SUCCESS;
}
COMMTUNE_STANDIN_EXPORT CUresult CUDAAPI cuDeviceGet(CUdevice* device, int number) {
  *device = number;
  return is_gpu(number) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
COMMTUNE_STANDIN_EXPORT CUresult CUDAAPI cuDeviceGetName(char* name, int length, CUdevice device) {
  if (!is_gpu(device)) return CUDA_ERROR_INVALID_DEVICE;
  write_text(name, length, "commtune stand-in GPU");
  return CUDA_SUCCESS;
}
COMMTUNE_STANDIN_EXPORT CUresult CUDAAPI cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  if (!is_gpu(device)) return CUDA_ERROR_INVALID_DEVICE;
  std::memset(uuid, 0, sizeof *uuid);
  uuid->bytes[15] = static_cast<char>(device);
  return CUDA_SUCCESS;
}
COMMTUNE_STANDIN_EXPORT CUresult CUDAAPI cuDeviceGetPCIBusId(char* text, int length, CUdevice device) {
  if (!is_gpu(device)) return CUDA_ERROR_INVALID_DEVICE;
  write_text(text, length, "0000:0" + std::to_string(device + 1) + ":00.0");
  return CUDA_SUCCESS;
}
COMMTUNE_STANDIN_EXPORT CUresult CUDAAPI cuDeviceGetAttribute(int* value, CUdevice_attribute which,
                                                              CUdevice device) {
  if (!is_gpu(device)) return CUDA_ERROR_INVALID_DEVICE;
  static const std::map<CUdevice_attribute, int> known{
      {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, kMultiprocessors},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
      {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
      {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1'000'000},
      {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 1'000'000},
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048}};
  const auto found = known.find(which);
  if (found == known.end()) return CUDA_ERROR_NOT_SUPPORTED;
  *value = found->second;
  return CUDA_SUCCESS;
}
COMMTUNE_STANDIN_EXPORT CUresult CUDAAPI cuDeviceTotalMem(std::size_t* bytes, CUdevice device) {
  *bytes = DeviceMemory::of_a_device();
  return is_gpu(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

// ---- Contexts ----

COMMTUNE_STANDIN_EXPORT CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  if (!is_gpu(device)) return CUDA_ERROR_INVALID_DEVICE;
  if (setting("TAKEN", -1) == device) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  *context = &contexts()[static_cast<std::size_t>(device)];
  return CUDA_SUCCESS;
}
COMMTUNE_STANDIN_EXPORT CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice device) {
  return is_gpu(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
COMMTUNE_STANDIN_EXPORT CUresult CUDAAPI cuCtxSetCurrent(CUcontext context) {
  if (in_host_function()) return CUDA_ERROR_NOT_PERMITTED;
  g_current = context;
  return CUDA_SUCCESS;
}
COMMTUNE_STANDIN_EXPORT CUresult CUDAAPI cuCtxGetCurrent(CUcontext* context) {
  if (in_host_function()) return CUDA_ERROR_NOT_PERMITTED;
  *context = g_current;
  return CUDA_SUCCESS;
}
COMMTUNE_STANDIN_EXPORT CUresult CUDAAPI cuCtxSynchronize() {
  const CUresult result = ready();
  if (result == CUDA_SUCCESS) streams().synchronize();
  return result;
}
COMMTUNE_STANDIN_EXPORT CUresult CUDAAPI cuCtxGetStreamPriorityRange(int* lowest, int* highest) {
  *lowest = kLowestPriority;
  *highest = kHighestPriority;
  return ready();
}

// ---- Memory ----

COMMTUNE_STANDIN_EXPORT CUresult CUDAAPI cuMemAlloc(CUdeviceptr* address, std::size_t bytes) {
  const CUresult result = ready();
  if (result != CUDA_SUCCESS) return result;
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  void* const memory = device_memory().allocate(bytes, g_current->device);
  *address = reinterpret_cast<CUdeviceptr>(memory);
  return memory == nullptr ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}
COMMTUNE_STANDIN_EXPORT CUresult CUDAAPI cuMemFree(CUdeviceptr address) {
  if (in_host_function()) return CUDA_ERROR_NOT_PERMITTED;
  streams().synchronize();
  const bool released = device_memory().release(reinterpret_cast<void*>(address), true);
  return released ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
COMMTUNE_STANDIN_EXPORT CUresult CUDAAPI cuMemGetInfo(std::size_t* left, std::size_t* all) {
  const CUresult result = ready();
  if (result != CUDA_SUCCESS) return result;
  *left = device_memory().left(g_current->device);
  *all = DeviceMemory::of_a_device();
  return CUDA_SUCCESS;
}
COMMTUNE_STANDIN_EXPORT CUresult CUDAAPI cuMemHostAlloc(void** address, std::size_t bytes,
                                                        unsigned /*flags*/) {
  const CUresult result = ready();
  if (result != CUDA_SUCCESS) return result;
  *address = device_memory().allocate_pinned(bytes);
  return *address == nullptr ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}
COMMTUNE_STANDIN_EXPORT CUresult CUDAAPI cuMemFreeHost(void* address) {
  if (in_host_function()) return CUDA_ERROR_NOT_PERMITTED;
  streams().synchronize();
  return device_memory().release(address, false) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
COMMTUNE_STANDIN_EXPORT CUresult CUDAAPI cuMemHostRegister(void* address, std::size_t bytes,
                                                           unsigned /*flags*/) {
  const CUresult result = ready();
  if (result != CUDA_SUCCESS) return result;
  return device_memory().pin(address, bytes) ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
}
COMMTUNE_STANDIN_EXPORT CUresult CUDAAPI cuMemHostUnregister(void* address) {
  if (in_host_function()) return CUDA_ERROR_NOT_PERMITTED;
  return device_memory().unpin(address) ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}
COMMTUNE_STANDIN_EXPORT CUresult CUDAAPI cuPointerGetAttribute(void* value, CUpointer_attribute which,
                                                               CUdeviceptr address) {
  DeviceMemory::Range range;
  if (!device_memory().find(reinterpret_cast<const void*>(address), 1, range))
    return CUDA_ERROR_INVALID_VALUE;
  const bool on_host = range.device == DeviceMemory::kHost;
  if (which == CU_POINTER_ATTRIBUTE_MEMORY_TYPE) {
    *static_cast<unsigned*>(value) = on_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  } else if (which == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) {
    *static_cast<int*>(value) = on_host ? 0 : range.device;
  } else {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  return CUDA_SUCCESS;
}

COMMTUNE_STANDIN_EXPORT CUresult CUDAAPI cuMemcpyAsync(CUdeviceptr into, CUdeviceptr from, std::size_t bytes,
                                                       CUstream stream) {
  const CUresult result = usable(stream);
  if (result != CUDA_SUCCESS) return result;
  return copy(stream, reinterpret_cast<void*>(into), reinterpret_cast<const void*>(from), bytes);
}
COMMTUNE_STANDIN_EXPORT CUresult CUDAAPI cuMemcpyHtoDAsync(CUdeviceptr into, const void* from,
                                                           std::size_t bytes, CUstream stream) {
  const CUresult result = usable(stream);
  if (result != CUDA_SUCCESS) return result;
  if (!is_on_device(into, bytes)) return CUDA_ERROR_INVALID_VALUE;
  return copy(stream, reinterpret_cast<void*>(into), from, bytes);
}
COMMTUNE_STANDIN_EXPORT CUresult CUDAAPI cuMemcpyDtoHAsync(void* into, CUdeviceptr from, std::size_t bytes,
                                                           CUstream stream) {
  const CUresult result = usable(stream);
  if (result != CUDA_SUCCESS) return result;
  if (!is_on_device(from, bytes)) return CUDA_ERROR_INVALID_VALUE;
  return copy(stream, into, reinterpret_cast<const void*>(from), bytes);
}
COMMTUNE_STANDIN_EXPORT CUresult CUDAAPI cuMemcpyDtoDAsync(CUdeviceptr into, CUdeviceptr from,
                                                           std::size_t bytes, CUstream stream) {
  const CUresult result = usable(stream);
  if (result != CUDA_SUCCESS) return result;
  if (!is_on_device(into, bytes) || !is_on_device(from, bytes)) return CUDA_ERROR_INVALID_VALUE;
  return copy(stream, reinterpret_cast<void*>(into), reinterpret_cast<const void*>(from), bytes);
}
COMMTUNE_STANDIN_EXPORT CUresult CUDAAPI cuMemsetD8Async(CUdeviceptr into, unsigned char value,
                                                         std::size_t bytes, CUstream stream) {
  const CUresult result = usable(stream);
  if (result != CUDA_SUCCESS) return result;
  if (!is_on_device(into, bytes)) return CUDA_ERROR_INVALID_VALUE;
  stream->works.put([=] { std::memset(reinterpret_cast<void*>(into), value, bytes); });
  return CUDA_SUCCESS;
}

// ---- Streams and events ----

COMMTUNE_STANDIN_EXPORT CUresult CUDAAPI cuStreamCreateWithPriority(CUstream* stream, unsigned /*flags*/,
                                                                    int priority) {
  const CUresult result = ready();
  if (result != CUDA_SUCCESS) return result;
  *stream = new CUstream_st;
  (*stream)->activity = &activity();
  (*stream)->priority = priority;
  streams().add(*stream);
  return CUDA_SUCCESS;
}
COMMTUNE_STANDIN_EXPORT CUresult CUDAAPI cuStreamDestroy(CUstream stream) {
  if (in_host_function()) return CUDA_ERROR_NOT_PERMITTED;
  if (!streams().remove(stream)) return CUDA_ERROR_INVALID_HANDLE;
  delete stream;
  return CUDA_SUCCESS;
}
COMMTUNE_STANDIN_EXPORT CUresult CUDAAPI cuStreamSynchronize(CUstream stream) {
  const CUresult result = usable(stream);
  if (result == CUDA_SUCCESS) stream->works.synchronize();
  return result;
}
COMMTUNE_STANDIN_EXPORT CUresult CUDAAPI cuStreamQuery(CUstream stream) {
  const CUresult result = usable(stream);
  if (result != CUDA_SUCCESS) return result;
  return stream->works.is_idle() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
COMMTUNE_STANDIN_EXPORT CUresult CUDAAPI cuStreamWaitEvent(CUstream stream, CUevent event,
                                                           unsigned /*flags*/) {
  const CUresult result = usable(stream);
  if (result == CUDA_SUCCESS) event->place.hold(stream->works);
  return result;
}
COMMTUNE_STANDIN_EXPORT CUresult CUDAAPI cuEventCreate(CUevent* event, unsigned flags) {
  const CUresult result = ready();
  if (result != CUDA_SUCCESS) return result;
  *event = new CUevent_st;
  (*event)->timed = (flags & CU_EVENT_DISABLE_TIMING) == 0;
  return CUDA_SUCCESS;
}
COMMTUNE_STANDIN_EXPORT CUresult CUDAAPI cuEventDestroy(CUevent event) {
  if (in_host_function()) return CUDA_ERROR_NOT_PERMITTED;
  delete event;
  return CUDA_SUCCESS;
}
COMMTUNE_STANDIN_EXPORT CUresult CUDAAPI cuEventRecord(CUevent event, CUstream stream) {
  const CUresult result = usable(stream);
  if (result == CUDA_SUCCESS) event->place.record(stream->works);
  return result;
}
COMMTUNE_STANDIN_EXPORT CUresult CUDAAPI cuEventQuery(CUevent event) {
  if (in_host_function()) return CUDA_ERROR_NOT_PERMITTED;
  return event->place.has_passed() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
COMMTUNE_STANDIN_EXPORT CUresult CUDAAPI cuEventSynchronize(CUevent event) {
  if (in_host_function()) return CUDA_ERROR_NOT_PERMITTED;
  event->place.synchronize();
  return CUDA_SUCCESS;
}
COMMTUNE_STANDIN_EXPORT CUresult CUDAAPI cuEventElapsedTime(float* milliseconds, CUevent first,
                                                            CUevent second) {
  if (!first->timed || !second->timed) return CUDA_ERROR_INVALID_HANDLE;
  if (!first->place.was_recorded() || !second->place.was_recorded()) return CUDA_ERROR_INVALID_HANDLE;
  if (!first->place.has_passed() || !second->place.has_passed()) return CUDA_ERROR_NOT_READY;
  *milliseconds =
      std::chrono::duration<float, std::milli>(second->place.when() - first->place.when()).count();
  return CUDA_SUCCESS;
}
COMMTUNE_STANDIN_EXPORT CUresult CUDAAPI cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data) {
  const CUresult result = usable(stream);
  if (result == CUDA_SUCCESS) stream->works.call([=] { function(data); });
  return result;
}

// ---- Kernels ----

COMMTUNE_STANDIN_EXPORT CUresult CUDAAPI cuModuleLoadData(CUmodule* module, const void* image) {
  const CUresult result = ready();
  if (result != CUDA_SUCCESS) return result;
  if (image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *module = new CUmod_st;
  return CUDA_SUCCESS;
}
COMMTUNE_STANDIN_EXPORT CUresult CUDAAPI cuModuleUnload(CUmodule module) {
  delete module;
  return CUDA_SUCCESS;
}
COMMTUNE_STANDIN_EXPORT CUresult CUDAAPI cuModuleGetFunction(CUfunction* function, CUmodule /*module*/,
                                                             const char* name) {
  const NamedTwin* const twin = find_twin(name);
  *function = reinterpret_cast<CUfunction>(const_cast<NamedTwin*>(twin));
  return twin == nullptr ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}
COMMTUNE_STANDIN_EXPORT CUresult CUDAAPI cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks,
                                                                                     CUfunction /*function*/,
                                                                                     int /*threads*/,
                                                                                     std::size_t /*shared*/) {
  *blocks = 8;
  return ready();
}
COMMTUNE_STANDIN_EXPORT CUresult CUDAAPI cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                                        unsigned grid_z, unsigned block_x, unsigned block_y,
                                                        unsigned block_z, unsigned /*shared*/,
                                                        CUstream stream, void** arguments, void** extra) {
  const CUresult result = usable(stream);
  if (result != CUDA_SUCCESS) return result;
  if (extra != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  const unsigned grid = grid_x * grid_y * grid_z;
  const unsigned block = block_x * block_y * block_z;
  if (grid == 0 || block == 0 || block > 1024) return CUDA_ERROR_INVALID_VALUE;
  const auto& twin = *reinterpret_cast<const NamedTwin*>(function);
  const auto own = std::make_shared<Arguments>(twin, arguments);
  stream->works.put([&twin, own, grid, block] {
    take_time(std::chrono::steady_clock::now(), setting("LAUNCH_US", 0), 0, 0);
    twin.run({grid, block, own->places()});
  });
  return CUDA_SUCCESS;
}
