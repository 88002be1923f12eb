#include "executor/memory/cuda/cuda_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "perfmodel/base/error.h"

namespace commtune::cuda {
namespace {

CUdeviceptr address_on_device(ConstBuffer buffer) { return reinterpret_cast<CUdeviceptr>(buffer.address); }

std::unique_ptr<Gpu> made_current(std::unique_ptr<Gpu> gpu) {
  gpu->current();
  return gpu;
}

}  // namespace

CudaMemory::CudaMemory(std::unique_ptr<Gpu> gpu)
    : Memory(gpu->device()),
      gpu_(made_current(std::move(gpu))),
      name_(fmt::format("cuda:{}", gpu_->number())),
      kernels_(*gpu_),
      ends_(*gpu_) {}

CudaMemory::~CudaMemory() {
  drain();
  for (const Counter& counter : counters_) driver().release(counter.on_device);
}

Buffer CudaMemory::allocate(std::size_t bytes) {
  here();
  CUdeviceptr address = 0;
  const CUresult result = driver().allocate(&address, std::max<std::size_t>(bytes, 1));
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    std::size_t left = 0;
    std::size_t all = 0;
    driver().memory_left(&left, &all);
    throw Error(ErrorCode::kUnavailable,
                fmt::format("{}: there are no {} B left, but {} of {}", name_, bytes, left, all));
  }
  expect(result, "cuMemAlloc");
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver's addresses are numbers
  return {reinterpret_cast<std::byte*>(address), bytes, device()};
}

void CudaMemory::release(const Buffer& buffer) noexcept {
  drain();
  driver().release(address_on_device(buffer));
}

void CudaMemory::register_buffer(const Buffer& buffer) {
  if (!buffer.on_host() || buffer.bytes == 0) return;
  here();
  // What cannot be pinned (a page that is pinned already, a limit on locked memory) is copied all the same.
  driver().pin(buffer.address, buffer.bytes, CU_MEMHOSTREGISTER_PORTABLE);
}

void CudaMemory::unregister_buffer(const Buffer& buffer) noexcept {
  if (!buffer.on_host() || buffer.bytes == 0) return;
  drain();
  driver().unpin(buffer.address);
}

Memory::Started CudaMemory::copy(Buffer into, ConstBuffer from) {
  assert(into.bytes == from.bytes);
  if (into.bytes == 0) return std::nullopt;
  const CUstream stream = here();
  if (into.on_host()) {
    expect(driver().copy_to_host(into.address, address_on_device(from), into.bytes, stream),
           "cuMemcpyDtoHAsync");
  } else if (from.on_host()) {
    expect(driver().copy_to_device(address_on_device(into), from.address, into.bytes, stream),
           "cuMemcpyHtoDAsync");
  } else {
    expect(driver().copy_on_device(address_on_device(into), address_on_device(from), into.bytes, stream),
           "cuMemcpyDtoDAsync");
  }
  return started();
}

Memory::Started CudaMemory::add(DataType type, Buffer into, ConstBuffer from) {
  kernels_.add(here(), type, into, from);
  return started();
}

Memory::Started CudaMemory::scale(DataType type, Buffer data, float factor) {
  kernels_.scale(here(), type, data, factor);
  return started();
}

Memory::Started CudaMemory::cast(DataType into_type, Buffer into, DataType from_type, ConstBuffer from) {
  if (into_type == from_type) return copy(into, from);
  kernels_.cast(here(), into_type, into, from_type, from);
  return started();
}

Memory::Started CudaMemory::gather(Buffer into, std::span<const Buffer> parts) {
  kernels_.gather(here(), into, parts);
  return started();
}

Memory::Started CudaMemory::scatter(std::span<const Buffer> parts, ConstBuffer from) {
  kernels_.scatter(here(), parts, from);
  return started();
}

Memory::Started CudaMemory::encode(DataType into_type, Buffer into, std::span<const Buffer> parts,
                                   float factor) {
  kernels_.encode(here(), into_type, into, parts, factor);
  return started();
}

Memory::Started CudaMemory::decode(std::span<const Buffer> parts, DataType from_type, ConstBuffer from,
                                   std::atomic<std::uint64_t>& overflows) {
  constexpr std::size_t kBytes = sizeof(std::uint64_t);
  const CUstream stream = here();
  Counter& counter = take_counter();
  expect(driver().set_bytes(counter.on_device, 0, kBytes, stream), "cuMemsetD8Async");
  kernels_.decode(stream, parts, from_type, from, counter.on_device);
  expect(driver().copy_to_host(counter.on_host.get(), counter.on_device, kBytes, stream),
         "cuMemcpyDtoHAsync");
  const Started operation = started();
  counter.sum = &overflows;
  counter.operation = *operation;
  return operation;
}

CudaMemory::Counter& CudaMemory::take_counter() {
  for (Counter& counter : counters_) {
    if (counter.sum == nullptr) return counter;
  }
  Counter counter;  // kept when it has all that it needs
  counter.on_host = allocate_pinned(sizeof(std::uint64_t));
  counters_.reserve(counters_.size() + 1);
  expect(driver().allocate(&counter.on_device, sizeof(std::uint64_t)), "cuMemAlloc");
  return counters_.emplace_back(std::move(counter));
}

std::span<const MemoryOperationId> CudaMemory::ended() {
  here();
  const std::span<const MemoryOperationId> ids = ends_.ended();
  for (Counter& counter : counters_) {
    if (counter.sum == nullptr || std::ranges::find(ids, counter.operation) == ids.end()) continue;
    std::uint64_t overflows = 0;
    std::memcpy(&overflows, counter.on_host.get(), sizeof overflows);
    *std::exchange(counter.sum, nullptr) += overflows;
  }
  return ids;
}

void CudaMemory::drain() noexcept {
  driver().set_context(gpu_->context());
  ends_.drain();
}

}  // namespace commtune::cuda
