#pragma once
// libcuda, loaded when the program runs: one program serves hosts with NVIDIA's driver and hosts without.
// Only the driver's interface is used, nothing of the CUDA runtime. For the sources of what uses GPUs.

#include <cuda.h>

#include <string>

namespace commtune::cuda {

/// The name under which a function's symbol is exported: the header maps cuMemAlloc to cuMemAlloc_v2.
#define COMMTUNE_CUDA_TEXT(NAME) #NAME
#define COMMTUNE_CUDA_SYMBOL(NAME) COMMTUNE_CUDA_TEXT(NAME)

/// FUNCTION(member, name) for each function of the driver that commtune calls.
#define COMMTUNE_CUDA_FUNCTIONS(FUNCTION)               \
  FUNCTION(init, cuInit)                                \
  FUNCTION(driver_version, cuDriverGetVersion)          \
  FUNCTION(error_name, cuGetErrorName)                  \
  FUNCTION(error_text, cuGetErrorString)                \
  FUNCTION(device_count, cuDeviceGetCount)              \
  FUNCTION(device, cuDeviceGet)                         \
  FUNCTION(device_name, cuDeviceGetName)                \
  FUNCTION(device_uuid, cuDeviceGetUuid)                \
  FUNCTION(device_bus_id, cuDeviceGetPCIBusId)          \
  FUNCTION(device_attribute, cuDeviceGetAttribute)      \
  FUNCTION(device_memory, cuDeviceTotalMem)             \
  FUNCTION(retain_context, cuDevicePrimaryCtxRetain)    \
  FUNCTION(release_context, cuDevicePrimaryCtxRelease)  \
  FUNCTION(set_context, cuCtxSetCurrent)                \
  FUNCTION(current_context, cuCtxGetCurrent)            \
  FUNCTION(synchronize_context, cuCtxSynchronize)       \
  FUNCTION(priority_range, cuCtxGetStreamPriorityRange) \
  FUNCTION(allocate, cuMemAlloc)                        \
  FUNCTION(release, cuMemFree)                          \
  FUNCTION(memory_left, cuMemGetInfo)                   \
  FUNCTION(allocate_pinned, cuMemHostAlloc)             \
  FUNCTION(release_pinned, cuMemFreeHost)               \
  FUNCTION(pin, cuMemHostRegister)                      \
  FUNCTION(unpin, cuMemHostUnregister)                  \
  FUNCTION(pointer_attribute, cuPointerGetAttribute)    \
  FUNCTION(copy, cuMemcpyAsync)                         \
  FUNCTION(copy_to_device, cuMemcpyHtoDAsync)           \
  FUNCTION(copy_to_host, cuMemcpyDtoHAsync)             \
  FUNCTION(copy_on_device, cuMemcpyDtoDAsync)           \
  FUNCTION(set_bytes, cuMemsetD8Async)                  \
  FUNCTION(create_stream, cuStreamCreateWithPriority)   \
  FUNCTION(destroy_stream, cuStreamDestroy)             \
  FUNCTION(synchronize_stream, cuStreamSynchronize)     \
  FUNCTION(query_stream, cuStreamQuery)                 \
  FUNCTION(wait_for_event, cuStreamWaitEvent)           \
  FUNCTION(create_event, cuEventCreate)                 \
  FUNCTION(destroy_event, cuEventDestroy)               \
  FUNCTION(record_event, cuEventRecord)                 \
  FUNCTION(query_event, cuEventQuery)                   \
  FUNCTION(synchronize_event, cuEventSynchronize)       \
  FUNCTION(elapsed_time, cuEventElapsedTime)            \
  FUNCTION(call_on_host, cuLaunchHostFunc)              \
  FUNCTION(load_module, cuModuleLoadData)               \
  FUNCTION(unload_module, cuModuleUnload)               \
  FUNCTION(module_function, cuModuleGetFunction)        \
  FUNCTION(launch, cuLaunchKernel)                      \
  FUNCTION(resident_blocks, cuOccupancyMaxActiveBlocksPerMultiprocessor)

struct Driver {
// NOLINTNEXTLINE(bugprone-macro-parentheses): names of a declaration
#define COMMTUNE_CUDA_MEMBER(MEMBER, NAME) decltype(&NAME) MEMBER = nullptr;
  COMMTUNE_CUDA_FUNCTIONS(COMMTUNE_CUDA_MEMBER)
#undef COMMTUNE_CUDA_MEMBER
};

/// The driver, initialised, or why this host has none. Loaded once a process and never unloaded; from any
/// thread. A process that forks does so before.
struct Loaded {
  Driver driver;
  int version = 0;      ///< of the driver, as CUDA counts: 13000 is 13.0
  std::string why_not;  ///< empty: it is there, with at least one device
};
const Loaded& loaded();
/// The driver itself; it must be there.
inline const Driver& driver() { return loaded().driver; }

/// "out of memory (CUDA_ERROR_OUT_OF_MEMORY)"
std::string words_of(CUresult result);
/// call    the driver's function, for the text: "cuMemAlloc"
/// throws  Error{kUnavailable} naming call and reason where the result is not success
void expect(CUresult result, const char* call);

}  // namespace commtune::cuda
