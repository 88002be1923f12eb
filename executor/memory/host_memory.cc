#include "executor/memory/host_memory.h"

#include <fmt/format.h>

#include <cassert>
#include <cstring>
#include <new>

#include "executor/memory/reduce.h"
#include "perfmodel/base/error.h"

namespace commtune {
namespace {

/// A cache line: no two buffers share one, and vectors are aligned.
constexpr std::align_val_t kAlignment{64};

/// Of so many bytes of float32 in another type.
std::size_t encoded(DataType type, std::size_t bytes) {
  return bytes / element_size(DataType::kFloat32).count * element_size(type).count;
}

/// Behind the first so many bytes.
template <typename Byte>
BasicBuffer<Byte> rest(const BasicBuffer<Byte>& buffer, std::size_t bytes) {
  return buffer.part(bytes, buffer.bytes - bytes);
}

class HostMemory final : public Memory {
 public:
  HostMemory() : Memory(Device::kHost) {}

  std::string_view name() const override { return "host"; }

  Buffer allocate(std::size_t bytes) override {
    try {
      return {static_cast<std::byte*>(::operator new(bytes, kAlignment)), bytes};
    } catch (const std::bad_alloc&) {
      throw Error(ErrorCode::kUnavailable, fmt::format("host memory: there are no {} B left", bytes));
    }
  }
  void release(const Buffer& buffer) noexcept override { ::operator delete(buffer.address, kAlignment); }

  Started copy(Buffer into, ConstBuffer from) override {
    assert(into.bytes == from.bytes);
    if (into.bytes > 0) std::memcpy(into.host().data(), from.host().data(), into.bytes);
    return std::nullopt;
  }
  Started add(DataType type, Buffer into, ConstBuffer from) override {
    commtune::add(type, into.host(), from.host());
    return std::nullopt;
  }
  Started scale(DataType type, Buffer data, float factor) override {
    commtune::scale(type, data.host(), factor);
    return std::nullopt;
  }
  Started cast(DataType into_type, Buffer into, DataType from_type, ConstBuffer from) override {
    commtune::cast(into_type, into.host(), from_type, from.host());
    return std::nullopt;
  }
  Started gather(Buffer into, std::span<const Buffer> parts) override {
    for (const Buffer& part : parts) {
      copy(into.first(part.bytes), part);
      into = rest(into, part.bytes);
    }
    return std::nullopt;
  }
  Started scatter(std::span<const Buffer> parts, ConstBuffer from) override {
    for (const Buffer& part : parts) {
      copy(part, from.first(part.bytes));
      from = rest(from, part.bytes);
    }
    return std::nullopt;
  }
  Started encode(DataType into_type, Buffer into, std::span<const Buffer> parts, float factor) override {
    for (const Buffer& part : parts) {
      const std::size_t bytes = encoded(into_type, part.bytes);
      commtune::encode(into_type, into.first(bytes).host(), ConstBuffer(part).host(), factor);
      into = rest(into, bytes);
    }
    return std::nullopt;
  }
  Started decode(std::span<const Buffer> parts, DataType from_type, ConstBuffer from,
                 std::atomic<std::uint64_t>& overflows) override {
    for (const Buffer& part : parts) {
      const std::size_t bytes = encoded(from_type, part.bytes);
      overflows += commtune::decode(part.host(), from_type, from.first(bytes).host());
      from = rest(from, bytes);
    }
    return std::nullopt;
  }

  std::span<const MemoryOperationId> ended() override { return {}; }
  void wake_with(std::function<void()> /*wake*/) override {}
  void drain() noexcept override {}
};

}  // namespace

Memory& host_memory() {
  static HostMemory memory;
  return memory;
}

}  // namespace commtune
