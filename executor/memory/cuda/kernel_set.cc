#include "executor/memory/cuda/kernel_set.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <string>

#include "executor/memory/cuda/kernel_images.h"
#include "executor/memory/cuda/kernels/parts.h"

namespace commtune::cuda {
namespace {

/// More would only wait for each other.
constexpr int kBlocksOnAMultiprocessor = 8;

/// As many as run at a time, so that blocks that take turns begin and end together.
unsigned blocks_at_a_time(const Gpu& gpu, CUfunction kernel) {
  int blocks = 0;
  expect(driver().resident_blocks(&blocks, kernel, static_cast<int>(kThreads), 0),
         "cuOccupancyMaxActiveBlocksPerMultiprocessor");
  return static_cast<unsigned>(std::clamp(blocks, 1, kBlocksOnAMultiprocessor) * gpu.multiprocessors());
}

std::uint64_t address_of(ConstBuffer buffer) { return reinterpret_cast<std::uint64_t>(buffer.address); }

/// As in the kernels' names.
std::string short_name(DataType type) {
  switch (type) {
    case DataType::kFloat32:
      return "fp32";
    case DataType::kFloat16:
      return "fp16";
    case DataType::kBfloat16:
      break;
  }
  return "bf16";
}

constexpr std::array kTypes{DataType::kFloat32, DataType::kFloat16, DataType::kBfloat16};

void launch(CUstream stream, CUfunction kernel, std::uint64_t blocks, void** arguments) {
  expect(driver().launch(kernel, static_cast<unsigned>(blocks), 1, 1, kThreads, 1, 1, 0, stream, arguments,
                         nullptr),
         "cuLaunchKernel");
}

}  // namespace

KernelSet::KernelSet(const Gpu& gpu)
    : elementwise_(images::elementwise()),
      parts_(images::parts()),
      most_blocks_(static_cast<unsigned>(gpu.multiprocessors() * kBlocksOnAMultiprocessor)),
      gather_(parts_.function("commtune_gather")),
      scatter_(parts_.function("commtune_scatter")),
      most_blocks_of_parts_(blocks_at_a_time(gpu, gather_)) {
  for (const DataType type : kTypes) {
    TypeKernels& kernels = by_type_[static_cast<std::size_t>(type)];
    const std::string name = short_name(type);
    kernels.add = elementwise_.function(("commtune_add_" + name).c_str());
    kernels.scale = elementwise_.function(("commtune_scale_" + name).c_str());
    for (const DataType from : kTypes) {
      if (from == type) continue;
      kernels.cast_from[static_cast<std::size_t>(from)] =
          elementwise_.function(("commtune_cast_" + short_name(from) + "_" + name).c_str());
    }
    if (type == DataType::kFloat32) continue;
    kernels.encode = parts_.function(("commtune_encode_" + name).c_str());
    kernels.decode = parts_.function(("commtune_decode_" + name).c_str());
  }
}

void KernelSet::launch_elements(CUstream stream, CUfunction kernel, std::uint64_t elements,
                                void** arguments) const {
  if (elements == 0) return;
  constexpr std::uint64_t kOfAThread = 8;
  const std::uint64_t wanted = (elements + kThreads * kOfAThread - 1) / (kThreads * kOfAThread);
  launch(stream, kernel, std::min<std::uint64_t>(wanted, most_blocks_), arguments);
}

void KernelSet::add(CUstream stream, DataType type, Buffer into, ConstBuffer from) const {
  assert(into.bytes == from.bytes);
  std::uint64_t to = address_of(into);
  std::uint64_t what = address_of(from);
  std::uint64_t elements = into.bytes / element_size(type).count;
  void* arguments[] = {&to, &what, &elements};
  launch_elements(stream, of(type).add, elements, arguments);
}

void KernelSet::scale(CUstream stream, DataType type, Buffer data, float factor) const {
  std::uint64_t to = address_of(data);
  std::uint64_t elements = data.bytes / element_size(type).count;
  void* arguments[] = {&to, &elements, &factor};
  launch_elements(stream, of(type).scale, elements, arguments);
}

void KernelSet::cast(CUstream stream, DataType into_type, Buffer into, DataType from_type,
                     ConstBuffer from) const {
  std::uint64_t to = address_of(into);
  std::uint64_t what = address_of(from);
  std::uint64_t elements = into.bytes / element_size(into_type).count;
  assert(elements == from.bytes / element_size(from_type).count);
  void* arguments[] = {&to, &what, &elements};
  launch_elements(stream, of(into_type).cast_from[static_cast<std::size_t>(from_type)], elements, arguments);
}

template <typename Launch>
void KernelSet::for_hundreds(std::span<const Buffer> parts, std::size_t unit, Launch launch) const {
  std::uint64_t begin = 0;
  Parts some{};
  while (!parts.empty()) {
    some.count = static_cast<std::uint32_t>(std::min<std::size_t>(parts.size(), kPartsOfALaunch));
    for (std::uint32_t i = 0; i < some.count; ++i) {
      some.address[i] = address_of(parts[i]);
      some.begin[i] = begin;
      begin += parts[i].bytes / unit;
    }
    some.begin[some.count] = begin;
    if (begin > some.begin[0]) launch(some, begin - some.begin[0]);
    parts = parts.subspan(some.count);
  }
}

void KernelSet::launch_parts(CUstream stream, CUfunction kernel, std::uint64_t elements, std::uint32_t turn,
                             void** arguments) const {
  launch(stream, kernel, std::min<std::uint64_t>((elements + turn - 1) / turn, most_blocks_of_parts_),
         arguments);
}

void KernelSet::gather(CUstream stream, Buffer into, std::span<const Buffer> parts) const {
  std::uint64_t wire = address_of(into);
  for_hundreds(parts, 1, [&](Parts& some, std::uint64_t bytes) {
    void* arguments[] = {&some, &wire};
    launch_parts(stream, gather_, bytes, kBytesOfATurn, arguments);
  });
}

void KernelSet::scatter(CUstream stream, std::span<const Buffer> parts, ConstBuffer from) const {
  std::uint64_t wire = address_of(from);
  for_hundreds(parts, 1, [&](Parts& some, std::uint64_t bytes) {
    void* arguments[] = {&some, &wire};
    launch_parts(stream, scatter_, bytes, kBytesOfATurn, arguments);
  });
}

void KernelSet::encode(CUstream stream, DataType into_type, Buffer into, std::span<const Buffer> parts,
                       float factor) const {
  std::uint64_t wire = address_of(into);
  for_hundreds(parts, sizeof(float), [&](Parts& some, std::uint64_t elements) {
    void* arguments[] = {&some, &wire, &factor};
    launch_parts(stream, of(into_type).encode, elements, kElementsOfATurn, arguments);
  });
}

void KernelSet::decode(CUstream stream, std::span<const Buffer> parts, DataType from_type, ConstBuffer from,
                       CUdeviceptr overflows) const {
  std::uint64_t wire = address_of(from);
  for_hundreds(parts, sizeof(float), [&](Parts& some, std::uint64_t elements) {
    void* arguments[] = {&some, &wire, &overflows};
    launch_parts(stream, of(from_type).decode, elements, kElementsOfATurn, arguments);
  });
}

}  // namespace commtune::cuda
