// Twins of executor/memory/cuda/kernels: the host's own sums, and the kernels' table of parts.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <thread>

#include "executor/memory/cuda/kernels/parts.h"
#include "executor/memory/reduce.h"
#include "tests/gpu/standin/twins.h"

namespace commtune::standin {
namespace {

using cuda::Parts;

template <DataType type>
std::span<std::byte> elements(std::uint64_t address, std::uint64_t n) {
  return {reinterpret_cast<std::byte*>(address), n * element_size(type).count};
}

template <DataType type>
void add(const Launch& launch) {
  const auto n = launch.argument<std::uint64_t>(2);
  commtune::add(type, elements<type>(launch.argument<std::uint64_t>(0), n),
                elements<type>(launch.argument<std::uint64_t>(1), n));
}

template <DataType type>
void scale(const Launch& launch) {
  const auto n = launch.argument<std::uint64_t>(1);
  commtune::scale(type, elements<type>(launch.argument<std::uint64_t>(0), n), launch.argument<float>(2));
}

template <DataType from, DataType to>
void cast(const Launch& launch) {
  const auto n = launch.argument<std::uint64_t>(2);
  commtune::cast(to, elements<to>(launch.argument<std::uint64_t>(0), n), from,
                 elements<from>(launch.argument<std::uint64_t>(1), n));
}

/// Calls each(address, begin on the wire, elements) for every part.
template <typename Each>
void for_parts(const Launch& launch, Each each) {
  const auto& parts = launch.argument<Parts>(0);
  for (std::uint32_t i = 0; i < parts.count; ++i)
    each(parts.address[i], parts.begin[i], parts.begin[i + 1] - parts.begin[i]);
}

void gather(const Launch& launch) {
  const auto wire = launch.argument<std::uint64_t>(1);
  for_parts(launch, [&](std::uint64_t address, std::uint64_t begin, std::uint64_t bytes) {
    std::memcpy(reinterpret_cast<void*>(wire + begin), reinterpret_cast<const void*>(address), bytes);
  });
}

void scatter(const Launch& launch) {
  const auto wire = launch.argument<std::uint64_t>(1);
  for_parts(launch, [&](std::uint64_t address, std::uint64_t begin, std::uint64_t bytes) {
    std::memcpy(reinterpret_cast<void*>(address), reinterpret_cast<const void*>(wire + begin), bytes);
  });
}

template <DataType type>
void encode(const Launch& launch) {
  const std::uint64_t wire = launch.argument<std::uint64_t>(1);
  const auto factor = launch.argument<float>(2);
  for_parts(launch, [&](std::uint64_t address, std::uint64_t begin, std::uint64_t n) {
    commtune::encode(type, elements<type>(wire + begin * element_size(type).count, n),
                     elements<DataType::kFloat32>(address, n), factor);
  });
}

template <DataType type>
void decode(const Launch& launch) {
  const std::uint64_t wire = launch.argument<std::uint64_t>(1);
  std::uint64_t overflows = 0;
  for_parts(launch, [&](std::uint64_t address, std::uint64_t begin, std::uint64_t n) {
    overflows += commtune::decode(elements<DataType::kFloat32>(address, n), type,
                                  elements<type>(wire + begin * element_size(type).count, n));
  });
  *reinterpret_cast<std::uint64_t*>(launch.argument<std::uint64_t>(2)) += overflows;
}

std::uint64_t device_clock() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

void sleep_until(std::uint64_t when) {
  std::this_thread::sleep_until(std::chrono::steady_clock::time_point(std::chrono::nanoseconds(when)));
}

void busy(const Launch& launch) { sleep_until(device_clock() + launch.argument<std::uint64_t>(0)); }

void busy_until(const Launch& launch) {
  sleep_until(launch.argument<std::uint64_t>(0));
  *reinterpret_cast<std::uint64_t*>(launch.argument<std::uint64_t>(1)) = device_clock();
}

constexpr std::size_t kTwoAndCount[] = {8, 8, 8};
constexpr std::size_t kOneAndFactor[] = {8, 8, 4};
constexpr std::size_t kPartsAndWire[] = {sizeof(Parts), 8};
constexpr std::size_t kPartsWireAndFactor[] = {sizeof(Parts), 8, 4};
constexpr std::size_t kPartsWireAndCount[] = {sizeof(Parts), 8, 8};
constexpr std::size_t kTime[] = {8};
constexpr std::size_t kEndAndStamp[] = {8, 8};

constexpr DataType kFp32 = DataType::kFloat32, kFp16 = DataType::kFloat16, kBf16 = DataType::kBfloat16;

constexpr NamedTwin kTwins[] = {
    {"commtune_add_fp32", add<kFp32>, kTwoAndCount},
    {"commtune_add_fp16", add<kFp16>, kTwoAndCount},
    {"commtune_add_bf16", add<kBf16>, kTwoAndCount},
    {"commtune_scale_fp32", scale<kFp32>, kOneAndFactor},
    {"commtune_scale_fp16", scale<kFp16>, kOneAndFactor},
    {"commtune_scale_bf16", scale<kBf16>, kOneAndFactor},
    {"commtune_cast_fp32_fp16", cast<kFp32, kFp16>, kTwoAndCount},
    {"commtune_cast_fp32_bf16", cast<kFp32, kBf16>, kTwoAndCount},
    {"commtune_cast_fp16_fp32", cast<kFp16, kFp32>, kTwoAndCount},
    {"commtune_cast_bf16_fp32", cast<kBf16, kFp32>, kTwoAndCount},
    {"commtune_cast_fp16_bf16", cast<kFp16, kBf16>, kTwoAndCount},
    {"commtune_cast_bf16_fp16", cast<kBf16, kFp16>, kTwoAndCount},
    {"commtune_gather", gather, kPartsAndWire},
    {"commtune_scatter", scatter, kPartsAndWire},
    {"commtune_encode_fp16", encode<kFp16>, kPartsWireAndFactor},
    {"commtune_encode_bf16", encode<kBf16>, kPartsWireAndFactor},
    {"commtune_decode_fp16", decode<kFp16>, kPartsWireAndCount},
    {"commtune_decode_bf16", decode<kBf16>, kPartsWireAndCount},
    {"commtune_busy", busy, kTime},
    {"commtune_busy_until", busy_until, kEndAndStamp},
};

}  // namespace

std::span<const NamedTwin> memory_twins() { return kTwins; }

}  // namespace commtune::standin
