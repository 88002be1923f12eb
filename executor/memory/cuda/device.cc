#include "executor/memory/cuda/device.h"

#include <fmt/format.h>

#include <array>

#include "perfmodel/base/error.h"

namespace commtune::cuda {

int gpu_count() {
  int count = 0;
  if (loaded().why_not.empty()) expect(driver().device_count(&count), "cuDeviceGetCount");
  return count;
}

GpuTraits::GpuTraits(int number) : number_(number) {
  if (!loaded().why_not.empty()) throw Error(ErrorCode::kUnavailable, loaded().why_not);
  if (const int count = gpu_count(); number < 0 || number >= count) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("GPU {}: this process sees {}, numbered from 0", number, count));
  }
  expect(driver().device(&device_, number), "cuDeviceGet");
}

std::string GpuTraits::name() const {
  std::array<char, 256> text{};
  expect(driver().device_name(text.data(), static_cast<int>(text.size()), device_), "cuDeviceGetName");
  return text.data();
}

std::string GpuTraits::bus_id() const {
  std::array<char, 32> text{};
  expect(driver().device_bus_id(text.data(), static_cast<int>(text.size()), device_), "cuDeviceGetPCIBusId");
  return text.data();
}

std::size_t GpuTraits::memory_bytes() const {
  std::size_t bytes = 0;
  expect(driver().device_memory(&bytes, device_), "cuDeviceTotalMem");
  return bytes;
}

int GpuTraits::attribute(CUdevice_attribute which) const {
  int value = 0;
  expect(driver().device_attribute(&value, which, device_), "cuDeviceGetAttribute");
  return value;
}

Gpu::Gpu(int number) : GpuTraits(number) {
  expect(driver().retain_context(&context_, handle()), "cuDevicePrimaryCtxRetain");
}

Gpu::~Gpu() { driver().release_context(handle()); }

Stream::Stream(Priority priority) {
  int lowest = 0;
  int highest = 0;
  expect(driver().priority_range(&lowest, &highest), "cuCtxGetStreamPriorityRange");
  const int level = priority == Priority::kHighest ? highest : lowest;
  expect(driver().create_stream(&handle_, CU_STREAM_NON_BLOCKING, level), "cuStreamCreateWithPriority");
}

Event::Event(Use use) {
  unsigned flags = use == Use::kTime ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING;
  if (use == Use::kWaiting) flags |= CU_EVENT_BLOCKING_SYNC;
  expect(driver().create_event(&handle_, flags), "cuEventCreate");
}

bool Event::has_passed() const {
  const CUresult result = driver().query_event(handle_);
  if (result == CUDA_ERROR_NOT_READY) return false;
  expect(result, "cuEventQuery");
  return true;
}

Seconds Event::since(const Event& earlier) const {
  float milliseconds = 0;
  expect(driver().elapsed_time(&milliseconds, earlier.handle_, handle_), "cuEventElapsedTime");
  return Seconds{static_cast<double>(milliseconds) * 1e-3};
}

CUfunction Module::function(const char* name) const {
  CUfunction function = nullptr;
  expect(driver().module_function(&function, handle_, name), name);
  return function;
}

PinnedMemory allocate_pinned(std::size_t bytes) {
  void* memory = nullptr;
  expect(driver().allocate_pinned(&memory, bytes == 0 ? 1 : bytes, CU_MEMHOSTALLOC_PORTABLE),
         "cuMemHostAlloc");
  return PinnedMemory(static_cast<std::byte*>(memory));
}

}  // namespace commtune::cuda
